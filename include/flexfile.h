/*
 * FlexFile: files whose bytes can be inserted and removed anywhere, in O(log N), crash-consistent.
 *
 * A path names a DIRECTORY (a "space"), which the library fills with its own files: DATA, TREE, LOG.0, LOG.1, LOCK.
 * flexfile_open() opens a space that holds one file; flexspace_open() one that holds any number, by name.
 * Back a space up by copying its directory while it is closed. Link with -lflexfile.
 *
 *   #include <flexfile.h>
 *   #include <stdio.h>
 *   int main(void) {
 *     flexfile *file = NULL;
 *     if (flexfile_open("notes.flex", NULL, &file) != FLEXFILE_OK ||
 *         flexfile_insert(file, 0, "first line\n", 11) != FLEXFILE_OK || flexfile_sync(file) != FLEXFILE_OK)
 *       fprintf(stderr, "%s\n", flexfile_last_error_message());
 *     return flexfile_close(&file) != FLEXFILE_OK;
 *   }
 *
 * STATUS. Functions return an int32_t: FLEXFILE_OK (0), an answer (> 0, such as FLEXFILE_NOT_FOUND), or an error
 * (< 0). Branch on the number only; flexfile_last_error_message() has the text for people, with path, byte offset and
 * errno. Numbers are never reused. A call that fails changes nothing, unless its description says otherwise.
 * Below, "the common ones" are FLEXFILE_INVALID_ARGUMENT (a handle or out-parameter that is NULL), FLEXFILE_CLOSED,
 * FLEXFILE_FORKED, FLEXFILE_NOT_FOUND (the file was removed), FLEXFILE_IO, FLEXFILE_CORRUPTION and FLEXFILE_PANIC;
 * "the write ones" are FLEXFILE_READ_ONLY, FLEXFILE_NO_SPACE and FLEXFILE_POISONED.
 *
 * POINTERS. Only what is said to be optional may be NULL; NULL elsewhere is FLEXFILE_INVALID_ARGUMENT. Bytes are a
 * pointer and a length; NULL with 0 is no bytes. Out-parameters come last and are written only on FLEXFILE_OK (or with
 * the answers that say so). Names and paths end with NUL. Structs that the library fills begin with struct_size, which
 * the caller sets to sizeof the struct: headers and libraries of different versions then get along.
 *
 * OWNERSHIP. What a function gives out as a handle (flexfile *, flexspace *, ...) belongs to the caller, who ends it
 * with its close, commit or free, never with free(3). These take the address of the variable and set it to NULL, so
 * that a second close of the same variable does nothing. Once a space is closed, the handles of its files, snapshots,
 * cursors and groups answer FLEXFILE_CLOSED, and are still to be freed, in any order.
 *
 * THREADS. Handles of spaces, files, snapshots and lists serve any number of threads at once ("Threads: any");
 * cursors, groups, builders and buffers one at a time. Readers never wait for writers; each change is seen whole or
 * not at all. No thread may use a handle while or after another one ends that very handle.
 *
 * DURABILITY. Each call that changes a file is atomic, also over a crash. When it becomes durable is the space's mode
 * (flexfile_options_set_durability()): by default with the next sync or close, and by itself before long. After a
 * crash a space holds a prefix of the calls: all that was synced, and perhaps more. flush survives the death of the
 * process, sync the death of the machine.
 *
 * FAILURE. A full disk is FLEXFILE_NO_SPACE: nothing was changed, and writing resumes when there is room. Any other
 * failed write or sync makes the space answer FLEXFILE_POISONED to writers until it is closed and opened again.
 * Damaged bytes are FLEXFILE_CORRUPTION, never returned as data. No call ends the process.
 *
 * FORK. One process has a space open for writing at a time; a second one gets FLEXFILE_BUSY. In a child of fork(),
 * inherited handles answer FLEXFILE_FORKED; freeing and closing them there is allowed and harms nothing.
 *
 * LIMITS. A file: 2^63 - 1 bytes. One call: 16 GiB of data. A name: 1 to 255 bytes. An array of struct iovec: 1024
 * entries. Tags: 1 to 65535.
 */


#ifndef FLEXFILE_H
#define FLEXFILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

// The version of this header: incompatible changes (while 0: of the minor number).
#define FLEXFILE_VERSION_MAJOR 0

// The version of this header: additions.
#define FLEXFILE_VERSION_MINOR 1

// The version of this header: corrections.
#define FLEXFILE_VERSION_PATCH 0

// MAJOR * 1000000 + MINOR * 1000 + PATCH, for #if.
#define FLEXFILE_VERSION_NUMBER 1000

// The on-disk format that this version writes. A directory of another format answers FLEXFILE_WRONG_VERSION.
#define FLEXFILE_FORMAT_VERSION 1

// The call did what it says.
#define FLEXFILE_OK 0

// Answer: there is no such name, tag, extent, data or hole.
#define FLEXFILE_NOT_FOUND 1

// Answer of the functions ending in _into: the destination is too small, nothing was copied.
#define FLEXFILE_BUFFER_TOO_SMALL 2

// Answer of a check: it went to the end and found problems.
#define FLEXFILE_PROBLEMS_FOUND 3

// Answer of a check: the progress callback stopped it.
#define FLEXFILE_CANCELLED 4

// The operating system refused a read, write or sync; see flexfile_last_error_errno().
#define FLEXFILE_IO -1

// Bytes on disk fail their checksum or contradict each other.
#define FLEXFILE_CORRUPTION -2

// An argument has no meaning: NULL, an unknown flag or enum value, a bad name. Nothing was changed.
#define FLEXFILE_INVALID_ARGUMENT -3

// The disk is full. Nothing was changed; removing bytes and reading go on.
#define FLEXFILE_NO_SPACE -4

// Another process, handle or thread holds what is asked for.
#define FLEXFILE_BUSY -5

// An earlier write or sync failed: only reads go on until the space is closed and opened again.
#define FLEXFILE_POISONED -6

// The space was closed.
#define FLEXFILE_CLOSED -7

// The handle came through fork().
#define FLEXFILE_FORKED -8

// The directory was written in a format that this version can't read.
#define FLEXFILE_WRONG_VERSION -9

// A length or count is above its limit.
#define FLEXFILE_TOO_BIG -10

// The space was opened for reading only.
#define FLEXFILE_READ_ONLY -11

// A defect of the library, caught at its border. Close what you have open, and please report the text.
#define FLEXFILE_PANIC -12

// An offset or range lies outside the file.
#define FLEXFILE_OUT_OF_RANGE -13

// There is a space, or a file of this name, already.
#define FLEXFILE_ALREADY_EXISTS -14

// Open only what exists: FLEXFILE_NOT_FOUND otherwise. By default a missing space is created.
#define FLEXFILE_OPEN_EXISTING 1

// Create only: FLEXFILE_ALREADY_EXISTS when there is a space. Not together with the other two FLEXFILE_OPEN_* flags
// about existence and reading.
#define FLEXFILE_OPEN_EXCLUSIVE 2

// For reading only; any number of processes may do so at once. Implies FLEXFILE_OPEN_EXISTING.
#define FLEXFILE_OPEN_READ_ONLY 4

// Start no thread for upkeep (idle sync, checkpoints, GC): the calls that write do it in passing, or you do, with
// sync, checkpoint and gc.
#define FLEXFILE_OPEN_NO_BACKGROUND 8

// What the calls since the last flush or sync wrote may be lost with the machine; the state is a prefix of the calls.
#define FLEXFILE_DURABILITY_MANUAL 0

// Each call that writes is durable when it returns.
#define FLEXFILE_DURABILITY_EVERY_COMMIT 1

// A sync in the background, at most interval_ms after a call that wrote.
#define FLEXFILE_DURABILITY_INTERVAL 2

// Log level: something failed.
#define FLEXFILE_LOG_ERROR 1

// Log level: something needs attention.
#define FLEXFILE_LOG_WARNING 2

// Log level: what the library does by itself.
#define FLEXFILE_LOG_INFO 3

// In the flags of a flexfile_extent: a hole, bytes that were never written and read as zeros.
#define FLEXFILE_EXTENT_HOLE 1

// A file: bytes that can be read, overwritten, inserted and removed anywhere.
//
// Threads: any number at once. Readers never wait for writers, and see each call's change whole or not at all.
typedef struct flexfile flexfile;

// Walks the extents of a file as of the moment the cursor was made. While it lives, what it sees keeps its room.
//
// Threads: one at a time; a second one inside gets FLEXFILE_BUSY.
typedef struct flexfile_cursor flexfile_cursor;

// How to open a space. The functions that open take a copy; one builder serves any number of them.
typedef struct flexfile_options flexfile_options;

// A file as of one moment. It costs nothing to take; while it lives, what it sees keeps its room.
//
// Threads: any number at once.
typedef struct flexfile_snapshot flexfile_snapshot;

// A space: a directory that holds any number of files, which share its log, its room and its sync.
//
// Threads: any number at once.
typedef struct flexspace flexspace;

// A list of files. It belongs to the caller and stays valid after the space is closed.
//
// Threads: any number at once.
typedef struct flexspace_file_list flexspace_file_list;

// Changes of several files that are committed together, in one atomic step, or not at all. The group sees its own
// changes; nobody else does before the commit. It locks its files for other writers, not for readers.
//
// Threads: one at a time; a second one inside gets FLEXFILE_BUSY.
typedef struct flexspace_group flexspace_group;

// All files of a space as of one moment. It costs nothing to take; while it lives, what it sees keeps its room.
//
// Threads: any number at once.
typedef struct flexspace_snapshot flexspace_snapshot;

// A buffer that the library grows. Start with flexfile_buf b = {0, 0, 0}; pass it to any number of calls, each of
// which replaces the content; end with flexfile_buf_free(). Never free(3) the data, never change the fields.
//
// Threads: one at a time.
typedef struct {
  // The bytes; NULL while capacity is 0. Valid until the next call with this buffer.
  uint8_t *data;
  // How many bytes there are.
  size_t len;
  // How many there is room for.
  size_t capacity;
} flexfile_buf;

// Receives the library's log lines. level: FLEXFILE_LOG_*. text: UTF-8, valid during the call only.
//
// It is called from any thread, the library's own included, and from several at once; it must not call the library,
// throw, or longjmp.
typedef void (*flexfile_log_callback)(void *ctx, int32_t level, const char *text);

// One extent of a file: bytes that lie together. Set struct_size before the call.
typedef struct {
  // sizeof(flexfile_extent), set by the caller.
  size_t struct_size;
  // Where in the file it begins.
  uint64_t offset;
  // How many bytes it has.
  uint64_t length;
  // FLEXFILE_EXTENT_*.
  uint32_t flags;
  // The tag of its first byte; 0 for none.
  uint16_t tag;
  // 0.
  uint16_t reserved;
} flexfile_extent;

// One file of a list. Set struct_size before the call.
typedef struct {
  // sizeof(flexspace_file_entry), set by the caller.
  size_t struct_size;
  // The name, NUL-terminated; it belongs to the list.
  const char *name;
  // The length of the name in bytes.
  size_t name_len;
  // A number that no other file of this space has or will have.
  uint64_t id;
  // The size in bytes.
  uint64_t size;
  // The number of extents.
  uint64_t extents;
} flexspace_file_entry;

// What a space holds, costs and did. Set struct_size before the call. New fields are added at the end only.
typedef struct {
  // sizeof(flexspace_stats), set by the caller.
  size_t struct_size;
  // Files in the space.
  uint64_t files;
  // Extents of all files, holes included.
  uint64_t extents;
  // Bytes that files refer to, holes not counted.
  uint64_t live_bytes;
  // Bytes of segments in use.
  uint64_t allocated_bytes;
  // Bytes in those segments that no file refers to any more: what GC can win.
  uint64_t dead_bytes;
  // Bytes freed but not reusable yet: their freeing is not durable, or a snapshot sees them.
  uint64_t quarantined_bytes;
  // Bytes of free segments kept for reuse.
  uint64_t free_bytes;
  // What the directory's files occupy on disk.
  uint64_t disk_bytes;
  // Memory of the extent trees.
  uint64_t tree_resident_bytes;
  // Pages of the extent trees on disk.
  uint64_t tree_pages;
  // Bytes of log that an open after a crash would replay.
  uint64_t log_bytes;
  // Snapshots that are held, cursors included.
  uint64_t snapshots;
  // The age of the oldest of them in milliseconds.
  uint64_t oldest_snapshot_age_ms;
  // The sequence number of the oldest of them.
  uint64_t oldest_snapshot_sequence;
  // Bytes that only snapshots keep from being reused.
  uint64_t snapshot_pinned_bytes;
  // Bytes that callers wrote since the space was opened.
  uint64_t user_bytes_written;
  // Bytes of data written since then, GC not counted.
  uint64_t data_bytes_written;
  // Bytes of tree pages written since then.
  uint64_t tree_bytes_written;
  // Bytes of log written since then.
  uint64_t log_bytes_written;
  // Bytes that GC and defragmentation wrote since then.
  uint64_t gc_bytes_written;
  // Checkpoints since then.
  uint64_t checkpoints;
  // Syncs of the device since then.
  uint64_t syncs;
  // Rounds of GC since then.
  uint64_t gc_rounds;
  // The number of the last change.
  uint64_t sequence;
  // The number of the last change that is durable.
  uint64_t durable_sequence;
  // The commit word (flexspace_commit_word()).
  uint64_t commit_word;
  // 1 when an earlier write or sync failed, so that only reads go on; else 0.
  uint64_t poisoned;
} flexspace_stats;

// Hears how far a check is: `done` of `total` steps. 0 goes on, anything else stops the check.
//
// It is called on the checking thread and must not throw or longjmp.
typedef int32_t (*flexspace_progress_callback)(void *ctx, uint64_t done, uint64_t total);

// Hears of a problem that a check found: in which file of the directory, at which byte of it, what. The texts are
// valid during the call only.
//
// It is called on the checking thread and must not throw or longjmp.
typedef void (*flexspace_problem_callback)(void *ctx, const char *file, uint64_t offset, const char *text);

// What a check went through. Set struct_size before the call. New fields are added at the end only.
typedef struct {
  // sizeof(flexspace_check_report), set by the caller.
  size_t struct_size;
  // Files walked.
  uint64_t files;
  // Extents walked.
  uint64_t extents;
  // Bytes of data whose checksum was compared.
  uint64_t bytes_verified;
  // Pages of the extent trees whose checksum was compared.
  uint64_t pages_verified;
  // Problems found.
  uint64_t problems;
} flexspace_check_report;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// ======== The version: macros of the header, and what the library says at run time. =====================

// FLEXFILE_VERSION_NUMBER of the library that is loaded, which may be newer than the header.
//
// Threads: any.
uint32_t flexfile_version_number(void);

// The version of the library that is loaded, as "0.1.0". Never to be freed.
//
// Threads: any.
const char *flexfile_version_string(void);

// FLEXFILE_FORMAT_VERSION of the library that is loaded.
//
// Threads: any.
uint32_t flexfile_format_version(void);

// ======== The status numbers of the C ABI, and how the core's errors become them. =======================

// A short English text for a status, never NULL, never to be freed. Unknown numbers get "unknown status".
//
// Threads: any.
const char *flexfile_status_string(int32_t status);

// ======== The text of the last failure, one per thread. =================================================

// The text of the last call of this thread whose status was not FLEXFILE_OK: what happened, with path, byte offset
// and the system's errno where there are any. UTF-8. Never NULL; "" when nothing failed yet.
//
// The pointer is valid until this thread's next call of the library. It is for people: branch on the status.
// Threads: each has its own text.
const char *flexfile_last_error_message(void);

// The errno of the last call of this thread whose status was not FLEXFILE_OK; 0 where the system had no part in it.
//
// Threads: each has its own.
int32_t flexfile_last_error_errno(void);

// Copies the text of flexfile_last_error_message() with its NUL, for those who keep it longer.
//
// dst, cap: where to, and its size. out_len: the length without the NUL; written with FLEXFILE_BUFFER_TOO_SMALL too
// (nothing is copied then; cap must be at least *out_len + 1). Does not change the text it copies unless it fails
// with FLEXFILE_INVALID_ARGUMENT.
// Threads: any.
int32_t flexfile_last_error_into(char *dst, size_t cap, size_t *out_len);

// ======== flexfile_buf: bytes that grow, owned by the caller, reused between calls. =====================

// Makes room for at least `capacity` bytes, and empties the buffer.
//
// Errors: FLEXFILE_TOO_BIG (no memory), FLEXFILE_INVALID_ARGUMENT. Threads: one at a time.
int32_t flexfile_buf_reserve(flexfile_buf *buf, size_t capacity);

// Frees the memory of a buffer and zeroes its fields, so that it can be used or freed again. NULL does nothing.
//
// Threads: one at a time.
void flexfile_buf_free(flexfile_buf *buf);

// ======== Options for opening: an opaque builder with defaults that suit most programs. =================

// Makes a builder with the defaults: create when missing, FLEXFILE_DURABILITY_MANUAL, segments of 4 MiB, upkeep in the
// background, no log. Free it with flexfile_options_free().
//
// Errors: FLEXFILE_INVALID_ARGUMENT. Threads: any; the builder itself is for one thread at a time.
int32_t flexfile_options_new(flexfile_options **out_options);

// Frees a builder and sets the variable to NULL. Spaces opened with it are not affected. NULL does nothing.
//
// Threads: one at a time.
void flexfile_options_free(flexfile_options **options);

// Sets the flags: FLEXFILE_OPEN_* joined by |, in place of those set before.
//
// Errors: FLEXFILE_INVALID_ARGUMENT for an unknown flag, or FLEXFILE_OPEN_EXCLUSIVE beside FLEXFILE_OPEN_EXISTING or
// FLEXFILE_OPEN_READ_ONLY; the builder is unchanged then. Threads: one at a time.
int32_t flexfile_options_set_flags(flexfile_options *options, uint32_t flags);

// Sets when calls become durable.
//
// mode: FLEXFILE_DURABILITY_*. interval_ms: with FLEXFILE_DURABILITY_INTERVAL above 0, else 0.
// Errors: FLEXFILE_INVALID_ARGUMENT. Threads: one at a time.
int32_t flexfile_options_set_durability(flexfile_options *options, int32_t mode, uint32_t interval_ms);

// Sets the size of segments, the unit in which a space takes room on disk and gives it back. Used when a space is
// created; one that exists keeps its own.
//
// bytes: a power of two from 64 KiB to 64 MiB.
// Errors: FLEXFILE_INVALID_ARGUMENT. Threads: one at a time.
int32_t flexfile_options_set_segment_size(flexfile_options *options, uint32_t bytes);

// Sets where log lines go; callback NULL: nowhere (the default).
//
// ctx is passed to each call of the callback; it must stay valid, and usable from any thread, until each space that
// was opened with this builder is closed.
// Errors: FLEXFILE_INVALID_ARGUMENT. Threads: one at a time.
int32_t flexfile_options_set_log(flexfile_options *options, flexfile_log_callback callback, void *ctx);

// ======== flexfile: a handle of one file. Open, close, size, durability; upkeep of its space. ===========

// Opens the one file kept in the directory `path`: a space with a file named "data" in it, both created when they are
// missing (the directory's parents are not).
//
// options: NULL for the defaults. out_file: close it with flexfile_close(), which closes the space too.
// Errors: those of flexspace_open(); FLEXFILE_NOT_FOUND also for a space without such a file that may not be created.
// Threads: any. Durability: a created space is durable when the call returns, its empty file by the space's mode.
int32_t flexfile_open(const char *path, const flexfile_options *options, flexfile **out_file);

// Closes the handle, frees it in any case, and sets the variable to NULL; NULL and a variable that is NULL are
// FLEXFILE_OK.
//
// A handle from flexfile_open() closes its space as flexspace_close() does: it waits for the calls inside and makes
// everything durable. Any other leaves the space and other handles as they are, and makes nothing durable.
// Errors: for a handle from flexfile_open() the common ones, the write ones; else none.
// Threads: any, once; no other thread may use this handle any more.
int32_t flexfile_close(flexfile **file);

// A handle of the space that the file is in, for all that flexspace_* offers beside it.
//
// out_space: give it back with flexspace_close(), which leaves the space open: who opened it closes it.
// Errors: FLEXFILE_INVALID_ARGUMENT. Threads: any.
int32_t flexfile_space(flexfile *file, flexspace **out_space);

// The file's number: no other file of the space has it or will have it, and renaming keeps it.
//
// Errors: FLEXFILE_INVALID_ARGUMENT. Threads: any.
int32_t flexfile_id(flexfile *file, uint64_t *out_id);

// The size in bytes.
//
// Errors: the common ones. Threads: any.
int32_t flexfile_size(flexfile *file, uint64_t *out_size);

// The number of extents, the pieces that the file's bytes lie in on disk; holes count.
//
// Errors: the common ones. Threads: any.
int32_t flexfile_extent_count(flexfile *file, uint64_t *out_count);

// flexspace_flush() of the file's space.
int32_t flexfile_flush(flexfile *file);

// flexspace_sync() of the file's space: everything written so far is durable on FLEXFILE_OK.
int32_t flexfile_sync(flexfile *file);

// flexspace_checkpoint() of the file's space.
int32_t flexfile_checkpoint(flexfile *file);

// flexspace_gc() of the file's space.
int32_t flexfile_gc(flexfile *file, uint64_t *out_segments_freed, uint64_t *out_bytes_copied);

// ======== Reading a file: bytes, extents, where data and holes are. Readers never wait for writers. =====

// Reads up to `cap` bytes from `offset` on, all as of one moment.
//
// dst, cap: where to, and how many at most. out_len: how many there were: fewer than cap only at the end of the file,
// 0 at or behind it. After an error the content of dst is not defined.
// Errors: the common ones. Threads: any.
int32_t flexfile_read(flexfile *file, uint64_t offset, void *dst, size_t cap, size_t *out_len);

// Reads up to `len` bytes from `offset` on, UINT64_MAX for all there are, into a buffer that grows as needed.
//
// buf: its content is replaced; buf->len says how many there were. After an error it is empty.
// Errors: the common ones, FLEXFILE_TOO_BIG (no memory for so many). Threads: any; the buffer is for one at a time.
int32_t flexfile_read_buf(flexfile *file, uint64_t offset, uint64_t len, flexfile_buf *buf);

// flexfile_read() into several buffers, one after the other, all as of one moment.
//
// iov, count: at most 1024 buffers, which don't overlap. out_len: the sum.
// Errors: the common ones, FLEXFILE_TOO_BIG (count, or the sum of the lengths). Threads: any.
int32_t flexfile_readv(flexfile *file, uint64_t offset, const struct iovec *iov, size_t count, size_t *out_len);

// Finds the extent that covers `offset`, and reads from the extent's own beginning.
//
// dst, cap: where to, and how many bytes at most. out_extent: the extent; set struct_size first. out_len: how many
// bytes were read, the smaller of cap and the extent's length (a hole reads as zeros).
// Errors: the common ones, FLEXFILE_OUT_OF_RANGE at or behind the end of the file. Threads: any.
int32_t flexfile_read_extent(flexfile *file,
                             uint64_t offset,
                             void *dst,
                             size_t cap,
                             flexfile_extent *out_extent,
                             size_t *out_len);

// flexfile_read_extent() of the whole extent into a buffer that grows as needed; a hole leaves it empty.
//
// Errors: the common ones, FLEXFILE_OUT_OF_RANGE, FLEXFILE_TOO_BIG (no memory). Threads: any; the buffer is for one at
// a time.
int32_t flexfile_read_extent_buf(flexfile *file,
                                 uint64_t offset,
                                 flexfile_buf *buf,
                                 flexfile_extent *out_extent);

// The first offset at or behind `offset` that is not in a hole (as lseek's SEEK_DATA).
//
// Errors: the common ones, FLEXFILE_NOT_FOUND when only holes follow, or the end. Threads: any.
int32_t flexfile_next_data(flexfile *file, uint64_t offset, uint64_t *out_offset);

// The first offset at or behind `offset` that is in a hole (as lseek's SEEK_HOLE); the end of the file counts as one.
//
// Errors: the common ones, FLEXFILE_NOT_FOUND at or behind the end. Threads: any.
int32_t flexfile_next_hole(flexfile *file, uint64_t offset, uint64_t *out_offset);

// ======== Changing a file: write, insert, collapse, update and their like. Each call is atomic. =========

// Writes bytes over what is at `offset`; the file grows as needed, and a gap between its end and `offset` becomes a
// hole that reads as zeros.
//
// Errors: the common ones, the write ones, FLEXFILE_TOO_BIG (the file would pass 2^63 - 1 bytes).
// Threads: any. Durability: by the space's mode; atomic.
int32_t flexfile_write(flexfile *file, uint64_t offset, const void *data, size_t len);

// flexfile_write() from several buffers, one after the other, as one atomic change.
//
// iov, count: at most 1024 buffers. Errors: as flexfile_write(), FLEXFILE_TOO_BIG also for count and the sum of the
// lengths. Threads: any. Durability: by the space's mode; atomic.
int32_t flexfile_writev(flexfile *file, uint64_t offset, const struct iovec *iov, size_t count);

// Inserts bytes at `offset`: what is there and behind moves up by `len`. Takes O(log N), whatever the file's size.
//
// offset: at most the file's size; there it appends.
// Errors: the common ones, the write ones, FLEXFILE_OUT_OF_RANGE behind the end, FLEXFILE_TOO_BIG (the file would pass
// 2^63 - 1 bytes). Threads: any. Durability: by the space's mode; atomic.
int32_t flexfile_insert(flexfile *file,
                        uint64_t offset,
                        const void *data,
                        size_t len);

// flexfile_insert() from several buffers, one after the other, as one atomic change.
//
// iov, count: at most 1024 buffers. Errors: as flexfile_insert(), FLEXFILE_TOO_BIG also for count and the sum of the
// lengths. Threads: any. Durability: by the space's mode; atomic.
int32_t flexfile_insertv(flexfile *file, uint64_t offset, const struct iovec *iov, size_t count);

// Inserts a hole at `offset`: `len` bytes that read as zeros and take no room on disk.
//
// Errors: as flexfile_insert(). Threads: any. Durability: by the space's mode; atomic.
int32_t flexfile_insert_hole(flexfile *file, uint64_t offset, uint64_t len);

// Removes `len` bytes at `offset`: what is behind moves down. Takes O(log N), whatever the file's size and `len`.
//
// Errors: the common ones, the write ones but FLEXFILE_NO_SPACE, FLEXFILE_OUT_OF_RANGE when the range passes the end.
// Threads: any. Durability: by the space's mode; atomic; the room comes back after that.
int32_t flexfile_collapse(flexfile *file, uint64_t offset, uint64_t len);

// Replaces `old_len` bytes at `offset` by `len` others, as one atomic change. The tag of the first byte stays if the
// new content is not empty.
//
// Errors: the common ones, the write ones, FLEXFILE_OUT_OF_RANGE when the old range passes the end, FLEXFILE_TOO_BIG.
// Threads: any. Durability: by the space's mode; atomic.
int32_t flexfile_update(flexfile *file, uint64_t offset, uint64_t old_len, const void *data, size_t len);

// Writes bytes at the end, wherever that is by then.
//
// out_offset: where they were put; may be NULL.
// Errors: as flexfile_write(). Threads: any; appends of several threads follow one another. Durability: by the space's
// mode; atomic.
int32_t flexfile_append(flexfile *file,
                        const void *data,
                        size_t len,
                        uint64_t *out_offset);

// Makes the file `size` bytes long: cuts its end off, or lets it grow by a hole.
//
// Errors: the common ones, the write ones, FLEXFILE_TOO_BIG. Threads: any. Durability: by the space's mode; atomic.
int32_t flexfile_truncate(flexfile *file, uint64_t size);

// Makes sure that the range is inside the file, as fallocate(2): a shorter file grows, by bytes that read as zeros.
// Bytes that are there stay.
//
// Errors: the common ones, the write ones, FLEXFILE_TOO_BIG. Threads: any. Durability: by the space's mode; atomic.
int32_t flexfile_fallocate(flexfile *file, uint64_t offset, uint64_t len);

// Makes a hole of the range: it reads as zeros and takes no room; offsets and the size stay.
//
// Errors: the common ones, the write ones but FLEXFILE_NO_SPACE, FLEXFILE_OUT_OF_RANGE. Threads: any. Durability: by
// the space's mode; atomic.
int32_t flexfile_punch_hole(flexfile *file, uint64_t offset, uint64_t len);

// Rewrites the range so that it lies in as few extents as possible; what it reads as stays the same. The library does
// so by itself where small writes left too many.
//
// out_bytes: how many bytes were rewritten; may be NULL.
// Errors: the common ones, the write ones. Threads: any; readers go on. Durability: by the space's mode.
int32_t flexfile_defrag(flexfile *file, uint64_t offset, uint64_t len, uint64_t *out_bytes);

// ======== Tags: 16-bit marks on bytes, which move with them. ============================================

// Tags the byte at `offset`; 0 takes the tag away. The tag moves with its byte, and goes when the byte is removed.
//
// Errors: the common ones, the write ones, FLEXFILE_OUT_OF_RANGE at or behind the end.
// Threads: any. Durability: by the space's mode; atomic.
int32_t flexfile_set_tag(flexfile *file, uint64_t offset, uint16_t tag);

// The tag of the byte at `offset`; 0 when it has none.
//
// Errors: the common ones, FLEXFILE_OUT_OF_RANGE at or behind the end. Threads: any.
int32_t flexfile_get_tag(flexfile *file, uint64_t offset, uint16_t *out_tag);

// The first tagged byte at or behind `offset`.
//
// out_offset: where it is. out_tag: its tag; may be NULL.
// Errors: the common ones, FLEXFILE_NOT_FOUND when there is none. Threads: any.
int32_t flexfile_next_tagged(flexfile *file, uint64_t offset, uint64_t *out_offset, uint16_t *out_tag);

// The last tagged byte at or before `offset`.
//
// out_offset: where it is. out_tag: its tag; may be NULL.
// Errors: the common ones, FLEXFILE_NOT_FOUND when there is none. Threads: any.
int32_t flexfile_prev_tagged(flexfile *file, uint64_t offset, uint64_t *out_offset, uint16_t *out_tag);

// ======== flexfile_snapshot: one file as of one moment, with the reading half of flexfile's functions. ==

// Takes a snapshot of the file. It is gone when the space is closed or the process ends.
//
// out_snapshot: free it with flexfile_snapshot_free().
// Errors: the common ones. Threads: any; nobody waits for it.
int32_t flexfile_snapshot_new(flexfile *file, flexfile_snapshot **out_snapshot);

// Frees a snapshot and sets the variable to NULL. NULL does nothing.
//
// Threads: any, once.
void flexfile_snapshot_free(flexfile_snapshot **snapshot);

// The sequence number of the last change that the snapshot sees (as in flexspace_stats).
//
// Errors: FLEXFILE_INVALID_ARGUMENT. Threads: any.
int32_t flexfile_snapshot_sequence(flexfile_snapshot *snapshot, uint64_t *out_sequence);

// The file's size in the snapshot.
//
// Errors: FLEXFILE_INVALID_ARGUMENT. Threads: any.
int32_t flexfile_snapshot_size(flexfile_snapshot *snapshot, uint64_t *out_size);

// The file's number of extents in the snapshot.
//
// Errors: FLEXFILE_INVALID_ARGUMENT. Threads: any.
int32_t flexfile_snapshot_extent_count(flexfile_snapshot *snapshot, uint64_t *out_count);

// flexfile_read() of a snapshot.
int32_t flexfile_snapshot_read(flexfile_snapshot *snapshot, uint64_t offset, void *dst, size_t cap, size_t *out_len);

// flexfile_read_buf() of a snapshot.
int32_t flexfile_snapshot_read_buf(flexfile_snapshot *snapshot, uint64_t offset, uint64_t len, flexfile_buf *buf);

// flexfile_readv() of a snapshot.
int32_t flexfile_snapshot_readv(flexfile_snapshot *snapshot,
                                uint64_t offset,
                                const struct iovec *iov,
                                size_t count,
                                size_t *out_len);

// flexfile_read_extent() of a snapshot.
int32_t flexfile_snapshot_read_extent(flexfile_snapshot *snapshot,
                                      uint64_t offset,
                                      void *dst,
                                      size_t cap,
                                      flexfile_extent *out_extent,
                                      size_t *out_len);

// flexfile_read_extent_buf() of a snapshot.
int32_t flexfile_snapshot_read_extent_buf(flexfile_snapshot *snapshot,
                                          uint64_t offset,
                                          flexfile_buf *buf,
                                          flexfile_extent *out_extent);

// flexfile_next_data() of a snapshot.
int32_t flexfile_snapshot_next_data(flexfile_snapshot *snapshot, uint64_t offset, uint64_t *out_offset);

// flexfile_next_hole() of a snapshot.
int32_t flexfile_snapshot_next_hole(flexfile_snapshot *snapshot, uint64_t offset, uint64_t *out_offset);

// flexfile_get_tag() of a snapshot.
int32_t flexfile_snapshot_get_tag(flexfile_snapshot *snapshot, uint64_t offset, uint16_t *out_tag);

// flexfile_next_tagged() of a snapshot.
int32_t flexfile_snapshot_next_tagged(flexfile_snapshot *snapshot,
                                      uint64_t offset,
                                      uint64_t *out_offset,
                                      uint16_t *out_tag);

// flexfile_prev_tagged() of a snapshot.
int32_t flexfile_snapshot_prev_tagged(flexfile_snapshot *snapshot,
                                      uint64_t offset,
                                      uint64_t *out_offset,
                                      uint16_t *out_tag);

// ======== flexfile_cursor: walks the extents of a file, both ways, as of the moment it was made. ========

// Makes a cursor on the extent that covers `offset`; at or behind the end it stands past the last extent.
//
// out_cursor: free it with flexfile_cursor_free().
// Errors: the common ones. Threads: any.
int32_t flexfile_cursor_new(flexfile *file, uint64_t offset, flexfile_cursor **out_cursor);

// flexfile_cursor_new() on a snapshot, which may be freed before the cursor.
int32_t flexfile_snapshot_cursor_new(flexfile_snapshot *snapshot, uint64_t offset, flexfile_cursor **out_cursor);

// Frees a cursor and sets the variable to NULL. NULL does nothing.
//
// Threads: any, once.
void flexfile_cursor_free(flexfile_cursor **cursor);

// The extent under the cursor.
//
// out_extent: set struct_size first.
// Errors: FLEXFILE_NOT_FOUND when the cursor stands past either end, FLEXFILE_BUSY, FLEXFILE_INVALID_ARGUMENT.
// Threads: one at a time.
int32_t flexfile_cursor_get(flexfile_cursor *cursor, flexfile_extent *out_extent);

// Moves the cursor to the extent that covers `offset`; at or behind the end it stands past the last extent.
//
// Errors: the common ones, FLEXFILE_BUSY. Threads: one at a time.
int32_t flexfile_cursor_seek(flexfile_cursor *cursor, uint64_t offset);

// Moves the cursor to the next extent; from the last one, past the end, which is FLEXFILE_OK too.
//
// Errors: the common ones, FLEXFILE_BUSY. Threads: one at a time.
int32_t flexfile_cursor_next(flexfile_cursor *cursor);

// Moves the cursor to the extent before; from the first one, past the beginning, which is FLEXFILE_OK too.
//
// Errors: the common ones, FLEXFILE_BUSY. Threads: one at a time.
int32_t flexfile_cursor_prev(flexfile_cursor *cursor);

// Reads the extent under the cursor from its beginning.
//
// dst, cap: where to, and how many bytes at most. out_len: how many were read, the smaller of cap and the extent's
// length (a hole reads as zeros).
// Errors: the common ones, FLEXFILE_NOT_FOUND when the cursor stands past either end, FLEXFILE_BUSY.
// Threads: one at a time.
int32_t flexfile_cursor_read(flexfile_cursor *cursor, void *dst, size_t cap, size_t *out_len);

// flexfile_cursor_read() of the whole extent into a buffer that grows as needed; a hole leaves it empty.
//
// Errors: as flexfile_cursor_read(), FLEXFILE_TOO_BIG (no memory). Threads: one at a time.
int32_t flexfile_cursor_read_buf(flexfile_cursor *cursor, flexfile_buf *buf);

// ======== flexspace: a directory with any number of files. Open, close, its files by name, durability, upkeep. 

// Opens the space in the directory `path`, which is created when it is missing (not its parents).
//
// options: NULL for the defaults. out_space: close it with flexspace_close().
// Errors: FLEXFILE_NOT_FOUND (no space, or no parent directory), FLEXFILE_ALREADY_EXISTS, FLEXFILE_BUSY (another
// handle or process has it open; the text names the process), FLEXFILE_INVALID_ARGUMENT (a directory with other
// things in it, a path that is no directory), FLEXFILE_WRONG_VERSION, FLEXFILE_CORRUPTION, FLEXFILE_NO_SPACE,
// FLEXFILE_IO.
// Threads: any. Durability: a created space is durable when the call returns.
int32_t flexspace_open(const char *path, const flexfile_options *options, flexspace **out_space);

// Closes the space: waits for the calls inside, makes everything durable, releases the lock. Frees the handle in any
// case and sets the variable to NULL; NULL and a variable that is NULL are FLEXFILE_OK.
//
// Handles of files, snapshots, cursors and groups that are still there stay valid, answer FLEXFILE_CLOSED, and are to
// be freed as usual, in any order. On a handle from flexfile_space() it frees the handle only; the space stays open.
// Errors: the common ones, the write ones. After an error, opening again gives everything that was durable before.
// Threads: any, once; no other thread may use this handle any more. Durability: everything is durable on FLEXFILE_OK.
int32_t flexspace_close(flexspace **space);

// Creates an empty file.
//
// name: 1 to 255 bytes. out_file: close it with flexfile_close(), which leaves the space open.
// Errors: the common ones, the write ones, FLEXFILE_ALREADY_EXISTS, FLEXFILE_INVALID_ARGUMENT (the name).
// Threads: any. Durability: by the space's mode.
int32_t flexspace_create_file(flexspace *space, const char *name, flexfile **out_file);

// Opens a file of the space. Any number of handles of one file may be open.
//
// out_file: close it with flexfile_close(), which leaves the space open.
// Errors: the common ones, FLEXFILE_NOT_FOUND, FLEXFILE_INVALID_ARGUMENT (the name). Threads: any.
int32_t flexspace_open_file(flexspace *space, const char *name, flexfile **out_file);

// Lists the files of the space, all as of one moment.
//
// out_list: free it with flexspace_file_list_free().
// Errors: the common ones. Threads: any.
int32_t flexspace_list_files(flexspace *space, flexspace_file_list **out_list);

// Renames a file; open handles of it go on.
//
// Errors: the common ones, the write ones, FLEXFILE_NOT_FOUND (from), FLEXFILE_ALREADY_EXISTS (to),
// FLEXFILE_INVALID_ARGUMENT (a name). Threads: any. Durability: by the space's mode.
int32_t flexspace_rename_file(flexspace *space, const char *from, const char *to);

// Removes a file. Open handles of it answer FLEXFILE_NOT_FOUND from now on; snapshots still read it.
//
// Errors: the common ones, the write ones but FLEXFILE_NO_SPACE, FLEXFILE_NOT_FOUND, FLEXFILE_INVALID_ARGUMENT (the
// name). Threads: any. Durability: by the space's mode; the room comes back after that.
int32_t flexspace_remove_file(flexspace *space, const char *name);

// Hands everything written so far to the system: it survives the death of the process.
//
// Errors: the common ones, the write ones. Threads: any.
int32_t flexspace_flush(flexspace *space);

// Makes everything written so far, to any file of the space, durable: it survives the death of the machine.
//
// Errors: the common ones, the write ones. Threads: any; several that wait share one flush of the device.
int32_t flexspace_sync(flexspace *space);

// Writes a checkpoint now, so that the next open has nothing to replay. The library does so by itself in time.
//
// Errors: the common ones, the write ones. Threads: any; neither readers nor writers wait for it.
// Durability: what the checkpoint holds is durable on FLEXFILE_OK.
int32_t flexspace_checkpoint(flexspace *space);

// Collects garbage now: gathers what is live in half-empty segments and gives their room back. The library does so by
// itself as room is needed.
//
// out_segments_freed, out_bytes_copied: what it did; each may be NULL.
// Errors: the common ones, the write ones. Threads: any; readers and writers go on.
int32_t flexspace_gc(flexspace *space, uint64_t *out_segments_freed, uint64_t *out_bytes_copied);

// The commit word: the number that the last group with one left (flexspace_group_set_commit_word()); 0 at first. It is
// as durable as that group, so that a program finds out after a crash how far it had come.
//
// Errors: the common ones. Threads: any.
int32_t flexspace_commit_word(flexspace *space,
                              uint64_t *out_word);

// ======== flexspace_file_list: the files of a space or of a snapshot, as of one moment. =================

// The number of files in a list; 0 for NULL.
//
// Threads: any.
size_t flexspace_file_list_count(const flexspace_file_list *list);

// The file at a place of the list, from 0.
//
// out_entry: set struct_size first; the name in it is valid until the list is freed.
// Errors: FLEXFILE_NOT_FOUND behind the last, FLEXFILE_INVALID_ARGUMENT. Threads: any.
int32_t flexspace_file_list_get(const flexspace_file_list *list, size_t index, flexspace_file_entry *out_entry);

// Frees a list and sets the variable to NULL. NULL does nothing.
//
// Threads: any, once.
void flexspace_file_list_free(flexspace_file_list **list);

// ======== flexspace_snapshot: all files of a space as of one moment. ====================================

// Takes a snapshot of the space. It is gone when the space is closed or the process ends.
//
// out_snapshot: free it with flexspace_snapshot_free().
// Errors: the common ones. Threads: any; nobody waits for it.
int32_t flexspace_snapshot_new(flexspace *space, flexspace_snapshot **out_snapshot);

// The sequence number of the last change that the snapshot sees (as in flexspace_stats).
//
// Errors: FLEXFILE_INVALID_ARGUMENT. Threads: any.
int32_t flexspace_snapshot_sequence(flexspace_snapshot *snapshot, uint64_t *out_sequence);

// Lists the files that the snapshot sees.
//
// out_list: free it with flexspace_file_list_free(). Errors: FLEXFILE_INVALID_ARGUMENT. Threads: any.
int32_t flexspace_snapshot_list_files(flexspace_snapshot *snapshot, flexspace_file_list **out_list);

// Opens a file as the snapshot sees it, removed or renamed since or not.
//
// out_file: free it with flexfile_snapshot_free(), before or after the snapshot of the space.
// Errors: the common ones, FLEXFILE_NOT_FOUND, FLEXFILE_INVALID_ARGUMENT (the name). Threads: any.
int32_t flexspace_snapshot_open_file(flexspace_snapshot *snapshot, const char *name, flexfile_snapshot **out_file);

// Frees a snapshot and sets the variable to NULL. NULL does nothing.
//
// Threads: any, once.
void flexspace_snapshot_free(flexspace_snapshot **snapshot);

// ======== flexspace_group: changes of several files that are committed together, or not at all. =========

// Begins a group over `count` files of the space: waits until no other group or writer is in them, and keeps other
// writers out until it is committed or freed.
//
// A thread that holds a group must change its files through the group only: a plain write to one of them would wait
// for the group, for ever. Groups that overlap may be begun in any order; none waits in a circle.
// files: each once. out_group: end it with flexspace_group_commit() or flexspace_group_free().
// Errors: the common ones, FLEXFILE_READ_ONLY, FLEXFILE_NOT_FOUND (a removed file), FLEXFILE_INVALID_ARGUMENT (a file
// named twice or of another space). Threads: any.
int32_t flexspace_group_begin(flexspace *space, flexfile *const *files, size_t count, flexspace_group **out_group);

// Commits the group's changes in one atomic step. Frees the group in any case and sets the variable to NULL; NULL and
// a variable that is NULL are FLEXFILE_OK.
//
// Errors: the common ones, the write ones; nothing is changed then.
// Threads: one, once. Durability: by the space's mode, as of one call.
int32_t flexspace_group_commit(flexspace_group **group);

// Undoes the group's changes, frees it, and sets the variable to NULL. NULL does nothing.
//
// Threads: one, once.
void flexspace_group_free(flexspace_group **group);

// Sets the number that becomes the space's commit word with this commit (flexspace_commit_word()).
//
// Errors: FLEXFILE_BUSY, FLEXFILE_INVALID_ARGUMENT. Threads: one at a time.
int32_t flexspace_group_set_commit_word(flexspace_group *group, uint64_t word);

// flexfile_size() as the group sees it.
//
// file: one of the group's; any other is FLEXFILE_INVALID_ARGUMENT, here and in the following functions.
// Errors: the common ones, FLEXFILE_BUSY. Threads: one at a time.
int32_t flexspace_group_size(flexspace_group *group, flexfile *file, uint64_t *out_size);

// flexfile_read() as the group sees it, its own changes included.
//
// Errors: as flexfile_read(), FLEXFILE_BUSY. Threads: one at a time.
int32_t flexspace_group_read(flexspace_group *group,
                             flexfile *file,
                             uint64_t offset,
                             void *dst,
                             size_t cap,
                             size_t *out_len);

// flexfile_write() within the group.
//
// Errors: as flexfile_write(), FLEXFILE_BUSY; the group goes on without this change. Threads: one at a time.
// Durability: with the commit; so for all that follow.
int32_t flexspace_group_write(flexspace_group *group, flexfile *file, uint64_t offset, const void *data, size_t len);

// flexfile_insert() within the group.
//
// Errors: as flexfile_insert(), FLEXFILE_BUSY; the group goes on without this change. Threads: one at a time.
int32_t flexspace_group_insert(flexspace_group *group, flexfile *file, uint64_t offset, const void *data, size_t len);

// flexfile_insert_hole() within the group.
//
// Errors: as flexfile_insert_hole(), FLEXFILE_BUSY; the group goes on without this change. Threads: one at a time.
int32_t flexspace_group_insert_hole(flexspace_group *group, flexfile *file, uint64_t offset, uint64_t len);

// flexfile_collapse() within the group.
//
// Errors: as flexfile_collapse(), FLEXFILE_BUSY; the group goes on without this change. Threads: one at a time.
int32_t flexspace_group_collapse(flexspace_group *group, flexfile *file, uint64_t offset, uint64_t len);

// flexfile_update() within the group.
//
// Errors: as flexfile_update(), FLEXFILE_BUSY; the group goes on without this change. Threads: one at a time.
int32_t flexspace_group_update(flexspace_group *group,
                               flexfile *file,
                               uint64_t offset,
                               uint64_t old_len,
                               const void *data,
                               size_t len);

// flexfile_truncate() within the group.
//
// Errors: as flexfile_truncate(), FLEXFILE_BUSY; the group goes on without this change. Threads: one at a time.
int32_t flexspace_group_truncate(flexspace_group *group, flexfile *file, uint64_t size);

// flexfile_set_tag() within the group.
//
// Errors: as flexfile_set_tag(), FLEXFILE_BUSY; the group goes on without this change. Threads: one at a time.
int32_t flexspace_group_set_tag(flexspace_group *group, flexfile *file, uint64_t offset, uint16_t tag);

// ======== flexspace_stats: what a space holds, costs and did. ===========================================

// The space's statistics.
//
// out_stats: set struct_size first. Errors: the common ones. Threads: any.
int32_t flexspace_get_stats(flexspace *space, flexspace_stats *out_stats);

// flexspace_get_stats() of the file's space.
int32_t flexfile_get_stats(flexfile *file, flexspace_stats *out_stats);

// ======== Checking a space: every byte read, every checksum and cross-reference compared. ===============

// Reads and compares everything in the space.
//
// progress, problem: either may be NULL; both get ctx. out_report: set struct_size first; may be NULL; written with
// FLEXFILE_OK (all is sound) and FLEXFILE_PROBLEMS_FOUND (the last error text names the first).
// Errors: the common ones, FLEXFILE_PROBLEMS_FOUND, FLEXFILE_CANCELLED. Threads: any; others go on.
int32_t flexspace_check(flexspace *space,
                        flexspace_progress_callback progress,
                        flexspace_problem_callback problem,
                        void *ctx,
                        flexspace_check_report *out_report);

// flexspace_check() of the file's space.
int32_t flexfile_check(flexfile *file,
                       flexspace_progress_callback progress,
                       flexspace_problem_callback problem,
                       void *ctx,
                       flexspace_check_report *out_report);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FLEXFILE_H */
