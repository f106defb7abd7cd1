//! What the benchmarks share: figures with medians, the table, the JSON lines, and random numbers.

use std::fmt::Write as _;
use std::path::PathBuf;

/// Figures of several runs; a figure's value is the median of its samples.
pub struct Report {
    bench: &'static str,
    parameters: String,
    figures: Vec<Figure>,
}

struct Figure {
    case: String,
    engine: &'static str,
    metric: &'static str,
    unit: &'static str,
    samples: Vec<f64>,
}

impl Report {
    /// An empty report; `parameters` are JSON fields for its first line.
    pub fn new(bench: &'static str, parameters: String) -> Report {
        Report { bench, parameters, figures: Vec::new() }
    }

    /// Adds a sample.
    pub fn add(&mut self, case: &str, engine: &'static str, metric: &'static str, unit: &'static str, value: f64) {
        let found = self.figures.iter_mut().find(|f| f.case == case && f.engine == engine && f.metric == metric);
        match found {
            Some(figure) => figure.samples.push(value),
            None => {
                let case = case.to_string();
                self.figures.push(Figure { case, engine, metric, unit, samples: vec![value] })
            }
        }
    }

    /// The median of a figure.
    pub fn median(&self, case: &str, engine: &str, metric: &str) -> Option<f64> {
        self.figures.iter().find(|f| f.case == case && f.engine == engine && f.metric == metric).map(Figure::median)
    }

    /// Prints the table and writes `target/bench/NAME.jsonl`.
    pub fn finish(&self) -> std::io::Result<()> {
        let name = self.bench;
        let mut text = format!("{{\"bench\":\"{name}\",\"machine\":\"{}\"{}}}\n", machine(), self.parameters);
        println!("{:<44} {:<9} {:<24} {:>12}", "case", "engine", "metric", "median");
        for figure in &self.figures {
            let Figure { case, engine, metric, unit, .. } = figure;
            let value = figure.median();
            println!("{case:<44} {engine:<9} {metric:<24} {value:>12.3} {unit}");
            let _ = writeln!(
                text,
                "{{\"bench\":\"{name}\",\"case\":\"{case}\",\"engine\":\"{engine}\",\"metric\":\"{metric}\",\
                 \"unit\":\"{unit}\",\"value\":{value:.4}}}"
            );
        }
        let dir = target_dir().join("bench");
        std::fs::create_dir_all(&dir)?;
        std::fs::write(dir.join(format!("{name}.jsonl")), text)
    }
}

impl Figure {
    fn median(&self) -> f64 {
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
    }
}

/// The workspace's `target`.
pub fn target_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target")
}

/// An environment variable as a number.
pub fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn machine() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
    let cpus = std::thread::available_parallelism().map_or(0, |n| n.get());
    let memory = read("/proc/meminfo");
    let memory = memory.lines().next().unwrap_or("").split_whitespace().nth(1).unwrap_or("?").to_string();
    format!("{}, {cpus} CPUs, {memory} KiB", model.trim_start_matches([' ', '\t', ':']).trim())
}

/// A small generator of random numbers (xorshift64*, Vigna 2016), the same in every run.
pub struct Random(pub u64);

impl Random {
    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) as u128 * n as u128) >> 64) as u64
    }
}
