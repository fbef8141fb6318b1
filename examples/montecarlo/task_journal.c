/* See task_journal.h. */
#include "task_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[] = "task journal 1\n";

static int fail(struct task_journal *journal, const char *what, const char *more)
{
    snprintf(journal->error, sizeof journal->error, "%s%s", what, more);
    if (journal->file >= 0)
        close(journal->file);
    journal->file = -1;
    return -1;
}

/* CRC-32, as zlib has it. */
static uint32_t checksum(const unsigned char *bytes, size_t count)
{
    uint32_t sum = ~0u;
    for (size_t i = 0; i < count; i++) {
        sum ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (0xedb88320u & -(sum & 1));
    }
    return ~sum;
}

/* The checksum stands at the end of a record. */
static int is_whole(const unsigned char *record, size_t size)
{
    uint32_t sum;
    memcpy(&sum, record + size - sizeof sum, sizeof sum);
    return checksum(record, size - sizeof sum) == sum;
}

static int write_all(int file, const void *bytes, size_t count)
{
    for (const char *at = bytes; count > 0;) {
        ssize_t written = write(file, at, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -1;
        at += written;
        count -= (size_t)written;
    }
    return 0;
}

/* The number of bytes that could be read: fewer than `count` at the end of the file only. */
static ssize_t read_all(int file, void *bytes, size_t count)
{
    size_t done = 0;
    while (done < count) {
        ssize_t got = read(file, (char *)bytes + done, count - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

/* What stands before the records. */
static int check_beginning(struct task_journal *journal, const char *wanted, size_t length)
{
    char there[JOURNAL_TEXT + sizeof magic] = "";
    ssize_t got = read_all(journal->file, there, sizeof there - 1);
    if (got < 0)
        return fail(journal, "it cannot be read: ", strerror(errno));
    size_t shorter = (size_t)got < sizeof magic - 1 ? (size_t)got : sizeof magic - 1;
    if (memcmp(there, magic, shorter) != 0)
        return fail(journal, "it is another kind of file; nothing has been changed in it", "");
    char *text = there + sizeof magic - 1;
    char *end = (size_t)got < sizeof magic ? NULL : strchr(text, '\n');
    if (end == NULL) {
        /* It is new, or was never begun as a whole. */
        if (ftruncate(journal->file, 0) != 0 || lseek(journal->file, 0, SEEK_SET) != 0 ||
            write_all(journal->file, wanted, length) != 0 || fsync(journal->file) != 0)
            return fail(journal, "it cannot be written: ", strerror(errno));
        return 0;
    }
    if ((size_t)(end + 1 - there) != length || memcmp(there, wanted, length) != 0) {
        char both[2 * JOURNAL_TEXT + 64];
        *end = '\0';
        snprintf(both, sizeof both, "`%s`, and these are now `%.*s`", text,
                 (int)(length - sizeof magic), wanted + sizeof magic - 1);
        return fail(journal, "its results were computed with the parameters ", both);
    }
    if (lseek(journal->file, (off_t)length, SEEK_SET) < 0)
        return fail(journal, "it cannot be read: ", strerror(errno));
    return 0;
}

/* Gives all results, and cuts off what a crash has left behind the last whole one. */
static int take_records(struct task_journal *journal, off_t start, task_journal_take *take,
                        void *context)
{
    unsigned char *record = malloc(journal->size);
    off_t end = start, at = start;
    ssize_t got;
    if (record == NULL)
        return fail(journal, "there is no memory", "");
    while ((got = read_all(journal->file, record, journal->size)) == (ssize_t)journal->size) {
        if (is_whole(record, journal->size)) {
            uint64_t task;
            if (end < at) {
                char where[96];
                free(record);
                snprintf(where, sizeof where, "%lld, and has more behind it: restore it",
                         (long long)end);
                return fail(journal, "it is damaged at byte ", where);
            }
            memcpy(&task, record, sizeof task);
            take(context, task, record + sizeof task);
            end += (off_t)journal->size;
        }
        at += (off_t)journal->size;
    }
    free(record);
    if (got < 0)
        return fail(journal, "it cannot be read: ", strerror(errno));
    if (ftruncate(journal->file, end) != 0 || lseek(journal->file, end, SEEK_SET) < 0)
        return fail(journal, "it cannot be written: ", strerror(errno));
    return 0;
}

int task_journal_open(struct task_journal *journal, const char *path, const char *parameters,
                      size_t result_size, task_journal_take *take, void *context)
{
    char wanted[JOURNAL_TEXT + sizeof magic];
    memset(journal, 0, sizeof *journal);
    journal->size = sizeof(uint64_t) + result_size + sizeof(uint32_t);
    journal->synced = time(NULL);
    journal->file = -1;
    int length = snprintf(wanted, sizeof wanted, "%s%s; results of %zu bytes\n", magic, parameters,
                          result_size);
    if (length < 0 || (size_t)length >= sizeof wanted || strchr(parameters, '\n') != NULL)
        return fail(journal, "the parameters have to be a line, and not that long", "");
    journal->file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (journal->file < 0)
        return fail(journal, "it cannot be opened: ", strerror(errno));
    if (flock(journal->file, LOCK_EX | LOCK_NB) != 0)
        return fail(journal, "it cannot be locked, since another program uses it: ",
                    strerror(errno));
    if (check_beginning(journal, wanted, (size_t)length) != 0)
        return -1;
    return take_records(journal, (off_t)length, take, context);
}

int task_journal_add(struct task_journal *journal, uint64_t task, const void *result)
{
    unsigned char record[4096];
    size_t size = journal->size;
    uint32_t sum;
    if (size > sizeof record)
        return fail(journal, "results are too large for it", "");
    memcpy(record, &task, sizeof task);
    memcpy(record + sizeof task, result, size - sizeof task - sizeof sum);
    sum = checksum(record, size - sizeof sum);
    memcpy(record + size - sizeof sum, &sum, sizeof sum);
    if (write_all(journal->file, record, size) != 0)
        return fail(journal, "it cannot be written: ", strerror(errno));
    if (++journal->unsynced >= JOURNAL_GROUP || time(NULL) > journal->synced) {
        if (fdatasync(journal->file) != 0)
            return fail(journal, "it cannot be written to disk: ", strerror(errno));
        journal->unsynced = 0;
        journal->synced = time(NULL);
    }
    return 0;
}

int task_journal_close(struct task_journal *journal)
{
    int file = journal->file;
    if (file >= 0 && fdatasync(file) != 0)
        return fail(journal, "it cannot be written to disk: ", strerror(errno));
    journal->file = -1;
    return file >= 0 && close(file) != 0 ? fail(journal, "it cannot be closed: ", strerror(errno))
                                         : 0;
}
