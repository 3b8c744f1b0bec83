/* Records, in order and with the data, every change a process makes to the files below one folder.

   Preloaded (LD_PRELOAD); the process itself calls power_begin, power_mark and power_end. The wrappers make the system
   call themselves, under one lock, and log it when it has succeeded. Streams that are opened for writing (fopen) become
   cookies over the recorded calls, since glibc's own writes pass no symbol that could be replaced.

   An entry is a line "KIND INODE OFFSET SIZE", a line for each of two paths (relative to the folder), and SIZE bytes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static FILE *out;
static char root[PATH_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static FILE *real_fopen(const char *path, const char *mode)
{
    FILE *(*real)(const char *, const char *) = (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen");
    return real(path, mode);
}

static void record(const char *kind, ino_t inode, long long offset, const char *a, const char *b, const void *data,
                   size_t size)
{
    int before = errno;
    fprintf(out, "%s %llu %lld %zu\n%s\n%s\n", kind, (unsigned long long)inode, offset, size, a, b);
    fwrite(data, 1, size, out);
    errno = before;
}

void power_begin(const char *folder, const char *log)
{
    if (!realpath(folder, root)) abort();
    out = real_fopen(log, "wb");
}

void power_mark(void) { record("mark", 0, 0, "", "", "", 0); }

int power_end(void)
{
    int failed = fclose(out);
    out = NULL;
    return failed;
}

/* The part of an absolute path below the root; NULL elsewhere. */
static const char *below(const char *path)
{
    size_t length = strlen(root);
    return !strncmp(path, root, length) && path[length] == '/' ? path + length + 1 : NULL;
}

/* The part below the root of what a call names; links in the folders above it are resolved, it is not. */
static const char *named(int folder, const char *path, char *buffer)
{
    char whole[2 * PATH_MAX], above[PATH_MAX] = "";
    if (!out || !path) return NULL;
    if (path[0] != '/') {
        char link[64];
        snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
        if (readlink(link, above, sizeof above - 1) < 0) return NULL;
    }
    snprintf(whole, sizeof whole, "%s/%s", above, path);
    while (strlen(whole) > 1 && whole[strlen(whole) - 1] == '/') whole[strlen(whole) - 1] = 0;
    char *name = strrchr(whole, '/');
    *name++ = 0;
    if (!realpath(*whole ? whole : "/", buffer)) return NULL;
    strcat(strcat(buffer, "/"), name);
    return below(buffer);
}

/* Whether a descriptor is of a file or folder below the root, or of the root. */
static int is_ours(int fd)
{
    char link[64], path[PATH_MAX + 1] = "";
    if (!out) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int before = errno, found = readlink(link, path, PATH_MAX) > 0;
    errno = before;
    return found && (below(path) || !strcmp(path, root));
}

static ino_t inode_of(int fd)
{
    struct stat state;
    return syscall(SYS_fstat, fd, &state) ? 0 : state.st_ino;
}

static ino_t inode_at(int folder, const char *path)
{
    struct stat state;
    return fstatat(folder, path, &state, AT_SYMLINK_NOFOLLOW) ? 0 : state.st_ino;
}

/* Make a call and, if it succeeded, log it. */
#define RECORDED(ours, call, failure, entry)                                                                           \
    if (!(ours)) return call;                                                                                          \
    pthread_mutex_lock(&lock);                                                                                         \
    __typeof__(call) result = call;                                                                                    \
    if (result != (failure)) entry;                                                                                    \
    pthread_mutex_unlock(&lock);                                                                                       \
    return result

static int opened(int folder, const char *path, int flags, mode_t mode)
{
    char buffer[2 * PATH_MAX];
    const char *name = flags & (O_CREAT | O_TRUNC) ? named(folder, path, buffer) : NULL;
    RECORDED(name, (int)syscall(SYS_openat, folder, path, flags, mode), -1,
             record("open", inode_of(result), !!(flags & O_TRUNC), name, "", "", 0));
}

#define MODE                                                                                                           \
    mode_t mode = 0;                                                                                                   \
    if (flags & (O_CREAT | O_TMPFILE)) {                                                                               \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode = va_arg(rest, int);                                                                                      \
        va_end(rest);                                                                                                  \
    }
int open(const char *path, int flags, ...) { MODE return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE return opened(AT_FDCWD, path, flags, mode); }
int openat(int folder, const char *path, int flags, ...) { MODE return opened(folder, path, flags, mode); }
int openat64(int folder, const char *path, int flags, ...) { MODE return opened(folder, path, flags, mode); }
int creat(const char *path, mode_t mode) { return opened(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

static void wrote(int fd, off_t offset, const void *data, ssize_t size)
{
    record("write", inode_of(fd), offset, "", "", data, size);
}

ssize_t write(int fd, const void *data, size_t size)
{
    RECORDED(is_ours(fd), (ssize_t)syscall(SYS_write, fd, data, size), -1,
             wrote(fd, lseek(fd, 0, SEEK_CUR) - result, data, result));
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
    RECORDED(is_ours(fd), (ssize_t)syscall(SYS_pwrite64, fd, data, size, offset), -1, wrote(fd, offset, data, result));
}
ssize_t pwrite64(int fd, const void *data, size_t size, off_t offset) { return pwrite(fd, data, size, offset); }

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    ssize_t total = 0;
    for (int part = 0; part < count; part++) {
        ssize_t size = write(fd, parts[part].iov_base, parts[part].iov_len);
        if (size < 0) return total ? total : -1;
        total += size;
        if ((size_t)size < parts[part].iov_len) break;
    }
    return total;
}

/* The kernel copies no data through us: EINVAL makes every caller that we have fall back to read and write. */
ssize_t sendfile(int to, int from, off_t *offset, size_t size)
{
    if (!is_ours(to)) return syscall(SYS_sendfile, to, from, offset, size);
    errno = EINVAL;
    return -1;
}
ssize_t sendfile64(int to, int from, off64_t *offset, size_t size) { return sendfile(to, from, offset, size); }

ssize_t copy_file_range(int from, off64_t *start, int to, off64_t *end, size_t size, unsigned flags)
{
    if (!is_ours(to)) return syscall(SYS_copy_file_range, from, start, to, end, size, flags);
    errno = EINVAL;
    return -1;
}

int ftruncate(int fd, off_t size)
{
    RECORDED(is_ours(fd), (int)syscall(SYS_ftruncate, fd, size), -1,
             record("truncate", inode_of(fd), size, "", "", "", 0));
}
int ftruncate64(int fd, off64_t size) { return ftruncate(fd, size); }

int truncate(const char *path, off_t size)
{
    char buffer[2 * PATH_MAX];
    RECORDED(named(AT_FDCWD, path, buffer), (int)syscall(SYS_truncate, path, size), -1,
             record("truncate", inode_at(AT_FDCWD, path), size, "", "", "", 0));
}
int truncate64(const char *path, off64_t size) { return truncate(path, size); }

int fsync(int fd)
{
    RECORDED(is_ours(fd), (int)syscall(SYS_fsync, fd), -1, record("sync", inode_of(fd), 0, "", "", "", 0));
}
int fdatasync(int fd) { return fsync(fd); }

int renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
    char first[2 * PATH_MAX], second[2 * PATH_MAX];
    const char *a = named(from, old, first), *b = named(to, new, second);
    RECORDED(a || b, (int)syscall(SYS_renameat2, from, old, to, new, flags), -1,
             record(flags & RENAME_EXCHANGE ? "exchange" : "rename", 0, 0, a ? a : "", b ? b : "", "", 0));
}
int renameat(int from, const char *old, int to, const char *new) { return renameat2(from, old, to, new, 0); }
int rename(const char *old, const char *new) { return renameat2(AT_FDCWD, old, AT_FDCWD, new, 0); }

int linkat(int from, const char *old, int to, const char *new, int flags)
{
    char buffer[2 * PATH_MAX];
    const char *name = named(to, new, buffer);
    RECORDED(name, (int)syscall(SYS_linkat, from, old, to, new, flags), -1,
             record("link", inode_at(to, new), 0, name, "", "", 0));
}
int link(const char *old, const char *new) { return linkat(AT_FDCWD, old, AT_FDCWD, new, 0); }

int unlinkat(int folder, const char *path, int flags)
{
    char buffer[2 * PATH_MAX];
    const char *name = named(folder, path, buffer);
    RECORDED(name, (int)syscall(SYS_unlinkat, folder, path, flags), -1, record("unlink", 0, 0, name, "", "", 0));
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int mkdirat(int folder, const char *path, mode_t mode)
{
    char buffer[2 * PATH_MAX];
    const char *name = named(folder, path, buffer);
    RECORDED(name, (int)syscall(SYS_mkdirat, folder, path, mode), -1,
             record("mkdir", inode_at(folder, path), 0, name, "", "", 0));
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

static ssize_t stream_read(void *fd, char *data, size_t size) { return read((int)(intptr_t)fd, data, size); }
static int stream_close(void *fd) { return close((int)(intptr_t)fd); }

static ssize_t stream_write(void *fd, const char *data, size_t size)
{
    ssize_t written = write((int)(intptr_t)fd, data, size);
    return written < 0 ? 0 : written;
}

static int stream_seek(void *fd, off64_t *offset, int whence)
{
    *offset = lseek((int)(intptr_t)fd, *offset, whence);
    return *offset < 0 ? -1 : 0;
}

FILE *fopen(const char *path, const char *mode)
{
    char buffer[2 * PATH_MAX];
    if (!strpbrk(mode, "wa+") || !named(AT_FDCWD, path, buffer)) return real_fopen(path, mode);
    int flags = (strchr(mode, '+') ? O_RDWR : O_WRONLY) | O_CLOEXEC;
    flags |= *mode == 'w' ? O_CREAT | O_TRUNC : *mode == 'a' ? O_CREAT | O_APPEND : 0;
    int fd = open(path, flags, 0666);
    cookie_io_functions_t calls = {stream_read, stream_write, stream_seek, stream_close};
    return fd < 0 ? NULL : fopencookie((void *)(intptr_t)fd, mode, calls);
}
FILE *fopen64(const char *path, const char *mode) { return fopen(path, mode); }
