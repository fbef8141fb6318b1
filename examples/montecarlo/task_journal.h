/*
 * A file that keeps the results of a task farm as they come, so that a later run of the program continues
 * with what is missing. It knows nothing of GridRPC.
 *
 * A line says what it is, another one what the results depend on. Then come records of one size: the
 * number of a task, its result, and a checksum of both. A record is written as soon as its result is
 * there, so that it stays when the program is killed; it is on disk a second later, or when
 * JOURNAL_GROUP more have come, so that it stays when the machine is switched off.
 */
#ifndef TASK_JOURNAL_H
#define TASK_JOURNAL_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum { JOURNAL_GROUP = 1000, JOURNAL_TEXT = 512 };

struct task_journal {
    int file;
    size_t size; /* of a record */
    unsigned unsynced;
    time_t synced;
    char error[2 * JOURNAL_TEXT + 256]; /* what went wrong, for people */
};

/* Called for each result in the file. */
typedef void task_journal_take(void *context, uint64_t task, const void *result);

/*
 * Opens the file, or makes it. `parameters`: all that the results depend on, as a line of text. A
 * record that a crash has left half written is cut off. Returns -1, with `error` set, if the file was
 * begun with other parameters, is in use, is damaged, or is no journal; it is left as it is then.
 */
int task_journal_open(struct task_journal *journal, const char *path, const char *parameters,
                      size_t result_size, task_journal_take *take, void *context);

/* Keeps a result. Returns -1, with `error` set, if it cannot be written. */
int task_journal_add(struct task_journal *journal, uint64_t task, const void *result);

/* Has all on disk. Returns -1, with `error` set, if that fails. */
int task_journal_close(struct task_journal *journal);

#endif
