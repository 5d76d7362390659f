/* Counts the system calls that change what lies below one folder, and lets a chosen one fail.
 *
 * A seccomp filter traps those calls, whoever makes them: Python, SQLite, FAISS or the C library
 * itself. The trap's handler counts the ones below the folder, does what was asked at the chosen
 * one, and makes every other call as it was meant. What is written through a memory map (SQLite's
 * -shm) is no call and is not seen. The filter outlives exec and the handler does not, so that an
 * armed process cannot start programs. Linux on x86-64 or aarch64.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/* The one place whose calls the filter lets through: faults_call(number, six arguments). */
long faults_call(long number, long a, long b, long c, long d, long e, long f);
extern char faults_called[];

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#define REGISTER(context, name) ((context)->uc_mcontext.gregs[name])
#define NUMBER(context) REGISTER(context, REG_RAX)
#define ANSWER(context) REGISTER(context, REG_RAX)
#define ARGUMENTS(context)                                                        \
    {REGISTER(context, REG_RDI), REGISTER(context, REG_RSI), REGISTER(context, REG_RDX), \
     REGISTER(context, REG_R10), REGISTER(context, REG_R8), REGISTER(context, REG_R9)}
__asm__(".text\n.globl faults_call\n.type faults_call, @function\nfaults_call:\n"
        "mov %rdi, %rax\nmov %rsi, %rdi\nmov %rdx, %rsi\nmov %rcx, %rdx\n"
        "mov %r8, %r10\nmov %r9, %r8\nmov 8(%rsp), %r9\nsyscall\n"
        ".globl faults_called\nfaults_called:\nret\n");
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#define NUMBER(context) ((context)->uc_mcontext.regs[8])
#define ANSWER(context) ((context)->uc_mcontext.regs[0])
#define ARGUMENTS(context)                                                      \
    {(context)->uc_mcontext.regs[0], (context)->uc_mcontext.regs[1],            \
     (context)->uc_mcontext.regs[2], (context)->uc_mcontext.regs[3],            \
     (context)->uc_mcontext.regs[4], (context)->uc_mcontext.regs[5]}
__asm__(".text\n.globl faults_call\n.type faults_call, %function\nfaults_call:\n"
        "mov x8, x0\nmov x0, x1\nmov x1, x2\nmov x2, x3\nmov x3, x4\nmov x4, x5\nmov x5, x6\n"
        "svc #0\n.globl faults_called\nfaults_called:\nret\n");
#else
#error "no registers known for this machine"
#endif

#ifndef SYS_openat2
#define SYS_openat2 437
#endif

enum kind { OTHER, WRITE, OPEN, RENAME, UNLINK, RMDIR, MKDIR, SYNC, TRUNCATE };
enum fault { NONE, KILL_BEFORE, KILL_AFTER, TORN, SHORT, ERROR_ONCE, ERROR_ON };

/* Shared with whoever armed the process, also after its end. */
struct faults {
    int64_t at;    /* the call that fails, counted from 1; 0: none */
    int64_t fault; /* enum fault */
    int64_t error; /* errno of ERROR_ONCE and ERROR_ON */
    int64_t log;   /* a file descriptor that every call is written to, or -1 */
    int64_t count; /* calls seen */
    int64_t hit;   /* enum kind of the call that failed; 0: none did */
    int64_t taught;/* a call below the folder that this file does not know: its number */
    char place[256];
};

struct call {
    enum kind kind;
    long at;     /* where in the file, or the size to cut it to; -1: at its end */
    long length; /* bytes to be written */
    const char *data;
    char path[4096], to[4096];
};

struct header {
    int32_t kind, path, to, flags;
    int64_t at, length;
};

static struct faults *faults;
static char root[4096];
static size_t root_length;

static long call(long number, long a, long b, long c, long d)
{
    return faults_call(number, a, b, c, d, 0, 0);
}

static void end(int signal)
{
    call(SYS_kill, call(SYS_getpid, 0, 0, 0, 0), signal, 0, 0);
}

static int is_below(const char *path)
{
    return !strncmp(path, root, root_length) && (path[root_length] == '/' || !path[root_length]);
}

static void path_of(long handle, char *path)
{
    char link[64] = "/proc/self/cwd";
    long length;
    if ((int)handle != AT_FDCWD) {
        char digits[16];
        int n = 0, i = 14;
        strcpy(link, "/proc/self/fd/");
        for (unsigned rest = (unsigned)handle; !n || rest; rest /= 10) digits[n++] = '0' + rest % 10;
        while (n) link[i++] = digits[--n];
        link[i] = 0;
    }
    length = call(SYS_readlinkat, AT_FDCWD, (long)link, (long)path, 4095);
    path[length > 0 ? length : 0] = 0;
}

static void path_at(long folder, const char *name, char *path)
{
    size_t length = 0;
    if (name[0] != '/') {
        path_of(folder, path);
        length = strlen(path);
        path[length++] = '/';
    }
    strncpy(path + length, name, 4095 - length);
    path[4095] = 0;
}

/* What a system call would do. Its `path` is empty where that is nothing to count. */
static void describe(long number, const long *a, struct call *it)
{
    int flags = 0;
    it->kind = OTHER;
    it->at = -1;
    it->length = 0;
    it->data = NULL;
    it->path[0] = it->to[0] = 0;
    switch (number) {
    case SYS_pwrite64:
        it->at = a[3];
        __attribute__((fallthrough));
    case SYS_write:
        it->kind = WRITE;
        it->data = (const char *)a[1];
        it->length = a[2];
        path_of(a[0], it->path);
        if (number == SYS_write && is_below(it->path)) it->at = call(SYS_lseek, a[0], 0, 1, 0);
        break;
    case SYS_fsync:
    case SYS_fdatasync:
        it->kind = SYNC;
        path_of(a[0], it->path);
        break;
    case SYS_ftruncate:
        it->kind = TRUNCATE;
        it->at = a[1];
        path_of(a[0], it->path);
        break;
    case SYS_openat:
        flags = a[2];
        path_at(a[0], (const char *)a[1], it->path);
        break;
    case SYS_mkdirat:
        it->kind = MKDIR;
        path_at(a[0], (const char *)a[1], it->path);
        break;
    case SYS_unlinkat:
        it->kind = a[2] & AT_REMOVEDIR ? RMDIR : UNLINK;
        path_at(a[0], (const char *)a[1], it->path);
        break;
    case SYS_renameat2:
#ifdef SYS_renameat
    case SYS_renameat:
#endif
        it->kind = RENAME;
        path_at(a[0], (const char *)a[1], it->path);
        path_at(a[2], (const char *)a[3], it->to);
        break;
#ifdef SYS_open
    case SYS_open:
        flags = a[1];
        path_at(AT_FDCWD, (const char *)a[0], it->path);
        break;
    case SYS_mkdir:
        it->kind = MKDIR;
        path_at(AT_FDCWD, (const char *)a[0], it->path);
        break;
    case SYS_unlink:
    case SYS_rmdir:
        it->kind = number == SYS_unlink ? UNLINK : RMDIR;
        path_at(AT_FDCWD, (const char *)a[0], it->path);
        break;
    case SYS_rename:
        it->kind = RENAME;
        path_at(AT_FDCWD, (const char *)a[0], it->path);
        path_at(AT_FDCWD, (const char *)a[1], it->to);
        break;
    case SYS_creat:
    case SYS_link:
    case SYS_symlink:
        path_at(AT_FDCWD, (const char *)a[number == SYS_creat ? 0 : 1], it->path);
        break;
#endif
    case SYS_linkat:
    case SYS_openat2:
    case SYS_truncate:
        path_at(AT_FDCWD, (const char *)a[number == SYS_linkat ? 3 : number == SYS_openat2], it->path);
        break;
    case SYS_symlinkat:
        path_at(a[1], (const char *)a[2], it->path);
        break;
    case SYS_copy_file_range:
        path_of(a[2], it->path);
        break;
    default: /* writev and its kin, sendfile, fallocate */
        path_of(a[0], it->path);
    }
    if (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) {
        it->kind = OPEN;
        it->at = flags;
    } else if (number == SYS_openat
#ifdef SYS_open
               || number == SYS_open
#endif
    ) {
        it->path[0] = 0;
    }
}

static void record(const struct call *it)
{
    struct header header = {it->kind, (int)strlen(it->path), (int)strlen(it->to), 0, it->at,
                            it->length};
    call(SYS_write, faults->log, (long)&header, sizeof header, 0);
    call(SYS_write, faults->log, (long)it->path, header.path, 0);
    call(SYS_write, faults->log, (long)it->to, header.to, 0);
    if (it->data) call(SYS_write, faults->log, (long)it->data, it->length, 0);
}

static long handle(long number, const long *a)
{
    struct call it;
    long meant, fault;
    describe(number, a, &it);
    if (!is_below(it.path)) return faults_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (it.kind == OTHER) {
        faults->taught = number;
        end(SIGABRT);
    }
    fault = ++faults->count == faults->at ? faults->fault : NONE;
    if (faults->fault == ERROR_ON && faults->at && faults->count > faults->at) return -faults->error;
    if (fault) {
        size_t length = strlen(it.path);
        faults->hit = it.kind;
        strcpy(faults->place, it.path + (length < 255 ? 0 : length - 255));
    }
    switch (fault) {
    case KILL_BEFORE:
        end(SIGKILL);
        break;
    case TORN:
    case SHORT:
        if (it.kind != WRITE || it.length < 2) {
            faults->hit = OTHER;
            break;
        }
        meant = faults_call(number, a[0], a[1], it.length / 2, a[3], 0, 0);
        if (fault == TORN) end(SIGKILL);
        return meant;
    case ERROR_ONCE:
    case ERROR_ON:
        return -faults->error;
    }
    meant = faults_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (faults->log >= 0 && meant >= 0) record(&it);
    if (fault == KILL_AFTER) end(SIGKILL);
    return meant;
}

static void on_trap(int signal, siginfo_t *info, void *interrupted)
{
    ucontext_t *context = interrupted;
    const long arguments[6] = ARGUMENTS(context);
    (void)signal;
    (void)info;
    ANSWER(context) = handle(NUMBER(context), arguments);
}

static const int trapped[] = {
    SYS_write, SYS_pwrite64, SYS_fsync, SYS_fdatasync, SYS_ftruncate, SYS_openat, SYS_mkdirat,
    SYS_unlinkat, SYS_renameat2, SYS_linkat, SYS_openat2, SYS_truncate, SYS_symlinkat,
    SYS_copy_file_range, SYS_writev, SYS_pwritev, SYS_pwritev2, SYS_sendfile, SYS_fallocate,
#ifdef SYS_renameat
    SYS_renameat,
#endif
#ifdef SYS_open
    SYS_open, SYS_mkdir, SYS_unlink, SYS_rmdir, SYS_rename, SYS_creat, SYS_link, SYS_symlink,
#endif
};
#define TRAPPED (sizeof trapped / sizeof *trapped)

/* From now on, and for good, this process is watched. Returns 0, or an errno. */
int faults_arm(struct faults *shared, const char *folder)
{
    struct sock_filter filter[10 + 2 * TRAPPED];
    const uint64_t called = (uintptr_t)faults_called;
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_RESTART};
    unsigned short n = 0;
    faults = shared;
    root_length = strlen(folder);
    if (root_length >= sizeof root) return ENAMETOOLONG;
    strcpy(root, folder);

#define LOAD(field) \
    (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define UNLESS(value, skipped) \
    (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skipped)
#define RETURN(what) (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, what)
    filter[n++] = LOAD(arch);
    filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    filter[n++] = RETURN(SECCOMP_RET_ALLOW);
    filter[n++] = LOAD(instruction_pointer);
    filter[n++] = UNLESS((uint32_t)called, 3);
    filter[n++] = (struct sock_filter)BPF_STMT(
        BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer) + 4);
    filter[n++] = UNLESS((uint32_t)(called >> 32), 1);
    filter[n++] = RETURN(SECCOMP_RET_ALLOW);
    filter[n++] = LOAD(nr);
    for (size_t i = 0; i < TRAPPED; i++) {
        filter[n++] = UNLESS((uint32_t)trapped[i], 1);
        filter[n++] = RETURN(SECCOMP_RET_TRAP);
    }
    filter[n++] = RETURN(SECCOMP_RET_ALLOW);

    struct sock_fprog program = {n, filter};
    if (sigaction(SIGSYS, &action, NULL)) return errno;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return errno;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program))
        return errno;
    return 0;
}
