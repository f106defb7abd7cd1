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
