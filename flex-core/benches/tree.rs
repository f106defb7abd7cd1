//! FlexTree against the paper's Table 1 baselines: a plain B+-tree with absolute offsets and a sorted array.
//!
//! Extents of length 1 with falling physical addresses, so that nothing merges. Prints a table and writes
//! `target/bench/tree.jsonl`: first an object with the machine and the parameters, then one object per figure. Every
//! figure is the median of [`RUNS`] runs. Run with `cargo bench -p flex-core --bench tree`; `FLEX_BENCH_EXTENTS` sets
//! another number of extents.

use flex_core::address::{PhysicalOffset, Tag};
use flex_core::tree::btree::BPlusTree;
use flex_core::tree::model::ArrayModel;
use flex_core::tree::{FlexTree, NoPages, Released, TreeLimits};
use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

const EXTENTS: u64 = 10_000_000;
const SMALL_EXTENTS: u64 = 1_000_000;
const SMALL_SAMPLE: u64 = 1000;
const RUNS: usize = 3;
const LOOKUPS: u64 = 5_000_000;
const REAP_SLICE: usize = 256;

/// What the three engines have in common. Inserts one byte.
trait Engine {
    const NAME: &'static str;
    fn new() -> Self;
    fn insert(&mut self, at: u64, address: PhysicalOffset);
    fn lookup(&self, at: u64) -> u64;
    fn memory_bytes(&self) -> u64;
}

struct Flex {
    tree: FlexTree,
    out: Released,
}

impl Engine for Flex {
    const NAME: &'static str = "flextree";

    fn new() -> Flex {
        Flex { tree: FlexTree::new(TreeLimits { max_extent_len: 128 << 10 }), out: Released::default() }
    }

    fn insert(&mut self, at: u64, address: PhysicalOffset) {
        self.tree.insert(&NoPages, at, 1, address, Tag::NONE, &mut self.out).expect("room");
    }

    fn lookup(&self, at: u64) -> u64 {
        self.tree.lookup(&NoPages, at).expect("nothing is stored").map_or(0, |extent| extent.address.0)
    }

    fn memory_bytes(&self) -> u64 {
        self.tree.resident_bytes()
    }
}

impl Engine for BPlusTree {
    const NAME: &'static str = "btree";

    fn new() -> BPlusTree {
        BPlusTree::new()
    }

    fn insert(&mut self, at: u64, address: PhysicalOffset) {
        BPlusTree::insert(self, at, 1, address, Tag::NONE);
    }

    fn lookup(&self, at: u64) -> u64 {
        BPlusTree::lookup(self, at).map_or(0, |extent| extent.address.0)
    }

    fn memory_bytes(&self) -> u64 {
        BPlusTree::memory_bytes(self) as u64
    }
}

impl Engine for ArrayModel {
    const NAME: &'static str = "array";

    fn new() -> ArrayModel {
        ArrayModel::new()
    }

    fn insert(&mut self, at: u64, address: PhysicalOffset) {
        ArrayModel::insert(self, at, 1, address, Tag::NONE);
    }

    fn lookup(&self, at: u64) -> u64 {
        ArrayModel::lookup(self, at).map_or(0, |extent| extent.address.0)
    }

    fn memory_bytes(&self) -> u64 {
        ArrayModel::memory_bytes(self) as u64
    }
}

/// A generator of 64-bit numbers (SplitMix64), seeded the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((u128::from(z ^ (z >> 31)) * u128::from(n)) >> 64) as u64
    }
}

/// Falling addresses, three bytes apart.
fn address(k: u64) -> PhysicalOffset {
    PhysicalOffset((1 << 47) - 3 * k)
}

/// Figures, each with the values of its runs.
#[derive(Default)]
struct Figures(Vec<Figure>);

struct Figure {
    case: &'static str,
    engine: &'static str,
    extents: u64,
    metric: &'static str,
    unit: &'static str,
    values: Vec<f64>,
}

impl Figures {
    fn add(&mut self, case: &'static str, engine: &'static str, extents: u64, metric: &'static str, value: f64) {
        let unit = match metric {
            "ns_per_op" => "ns",
            "bytes_per_extent" => "bytes",
            _ => "ms",
        };
        let same = |f: &&mut Figure| (f.case, f.engine, f.extents, f.metric) == (case, engine, extents, metric);
        match self.0.iter_mut().find(same) {
            Some(figure) => figure.values.push(value),
            None => self.0.push(Figure { case, engine, extents, metric, unit, values: vec![value] }),
        }
    }

    fn ns(&mut self, case: &'static str, engine: &'static str, extents: u64, ops: u64, work: impl FnOnce()) {
        let start = Instant::now();
        work();
        self.add(case, engine, extents, "ns_per_op", start.elapsed().as_nanos() as f64 / ops as f64);
    }
}

impl Figure {
    fn median(&self) -> f64 {
        let mut values = self.values.clone();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    }
}

fn build<E: Engine>(n: u64) -> E {
    let mut engine = E::new();
    for k in 0..n {
        engine.insert(k, address(k));
    }
    engine
}

/// Append and both lookups, and memory after the append.
fn measure_append_and_lookups<E: Engine>(n: u64, figures: &mut Figures) -> E {
    let mut engine = E::new();
    figures.ns("append", E::NAME, n, n, || (0..n).for_each(|k| engine.insert(k, address(k))));
    figures.add("append", E::NAME, n, "bytes_per_extent", engine.memory_bytes() as f64 / n as f64);
    figures.ns("lookup_ordered", E::NAME, n, n, || {
        black_box((0..n).map(|at| engine.lookup(at)).fold(0, u64::wrapping_add));
    });
    let mut random = Random(7);
    let shuffled: Vec<u64> = (0..LOOKUPS).map(|_| random.below(n)).collect();
    figures.ns("lookup_shuffled", E::NAME, n, LOOKUPS, || {
        black_box(shuffled.iter().map(|&at| engine.lookup(at)).fold(0, u64::wrapping_add));
    });
    engine
}

/// A whole tree built by insertions at random, and one by insertions at the head.
fn measure_inserts<E: Engine>(n: u64, figures: &mut Figures) {
    let mut engine = E::new();
    let mut random = Random(11);
    figures.ns("insert_random", E::NAME, n, n, || {
        (0..n).for_each(|k| engine.insert(random.below(k + 1), address(k)));
    });
    figures.add("insert_random", E::NAME, n, "bytes_per_extent", engine.memory_bytes() as f64 / n as f64);
    drop(engine);
    let mut engine = E::new();
    figures.ns("insert_head", E::NAME, n, n, || (0..n).for_each(|k| engine.insert(0, address(k))));
}

/// A bounded sample of insertions into `n` extents, for engines that take O(N) each.
fn measure_insert_sample<E: Engine>(n: u64, figures: &mut Figures) {
    let mut engine: E = build(n);
    let mut random = Random(13);
    let sample = if E::NAME == Flex::NAME { n / 10 } else { SMALL_SAMPLE };
    figures.ns("insert_random", E::NAME, n, sample, || {
        (0..sample).for_each(|k| engine.insert(random.below(n + k), address(n + k)));
    });
    figures.ns("insert_head", E::NAME, n, sample, || {
        (0..sample).for_each(|k| engine.insert(0, address(n + sample + k)));
    });
}

/// Collapse of the half in the middle, and the accounting of what it removed.
fn measure_collapse(mut flex: Flex, n: u64, figures: &mut Figures) {
    let start = Instant::now();
    flex.tree.collapse(&NoPages, n / 4, n / 2, &mut flex.out).expect("in range");
    figures.add("collapse_half", Flex::NAME, n, "ms", start.elapsed().as_secs_f64() * 1e3);
    let start = Instant::now();
    let mut bytes = 0;
    let mut subtrees = std::mem::take(&mut flex.out.subtrees);
    while let Some(mut subtree) = subtrees.pop() {
        while !subtree.take_apart_some(&NoPages, REAP_SLICE, &mut flex.out).expect("nothing is stored") {
            bytes += flex.out.extents.drain(..).map(|(_, len)| u64::from(len)).sum::<u64>();
        }
    }
    bytes += flex.out.extents.drain(..).map(|(_, len)| u64::from(len)).sum::<u64>();
    assert_eq!(bytes, n / 2);
    figures.add("collapse_half", Flex::NAME, n, "accounting_ms", start.elapsed().as_secs_f64() * 1e3);
}

fn run_once(n: u64, figures: &mut Figures) {
    let flex: Flex = measure_append_and_lookups(n, figures);
    measure_collapse(flex, n, figures);
    drop(measure_append_and_lookups::<BPlusTree>(n, figures));
    drop(measure_append_and_lookups::<ArrayModel>(n, figures));
    measure_inserts::<Flex>(n, figures);
    measure_insert_sample::<Flex>(SMALL_EXTENTS, figures);
    measure_insert_sample::<BPlusTree>(SMALL_EXTENTS, figures);
    measure_insert_sample::<ArrayModel>(SMALL_EXTENTS, figures);
}

fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let name = model.map_or("unknown", |(_, name)| name).replace(['"', '\\'], "");
    format!("{name}, {cores} cores, {}", std::env::consts::ARCH)
}

fn write_report(n: u64, figures: &Figures) -> std::io::Result<()> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench");
    std::fs::create_dir_all(&dir)?;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{{\"bench\":\"tree\",\"machine\":\"{}\",\"extents\":{n},\"extent_length\":1,\"lookups\":{LOOKUPS},\
         \"small_extents\":{SMALL_EXTENTS},\"baseline_sample\":{SMALL_SAMPLE},\"runs\":{RUNS}}}",
        machine()
    );
    println!("{:<16} {:<9} {:>9}  {:<17} {:>12}", "case", "engine", "extents", "metric", "median");
    for figure in &figures.0 {
        let Figure { case, engine, extents, metric, unit, .. } = figure;
        let value = figure.median();
        println!("{case:<16} {engine:<9} {extents:>9}  {metric:<17} {value:>12.2} {unit}");
        let _ = writeln!(
            text,
            "{{\"bench\":\"tree\",\"case\":\"{case}\",\"engine\":\"{engine}\",\"extents\":{extents},\
             \"metric\":\"{metric}\",\"unit\":\"{unit}\",\"value\":{value:.3}}}"
        );
    }
    std::fs::write(dir.join("tree.jsonl"), text)
}

fn main() -> std::io::Result<()> {
    let n = std::env::var("FLEX_BENCH_EXTENTS").ok().and_then(|text| text.parse().ok()).unwrap_or(EXTENTS);
    let mut figures = Figures::default();
    for _ in 0..RUNS {
        run_once(n, &mut figures);
    }
    write_report(n, &figures)
}
