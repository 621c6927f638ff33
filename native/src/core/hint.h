#ifndef OMI_HINT_H
#define OMI_HINT_H

/** Compiler and processor hints used on hot paths. */
#define OMI_LIKELY(x) __builtin_expect(!!(x), 1)
#define OMI_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define OMI_COLD __attribute__((noinline, cold))

#define OMI_CACHE_LINE 64

static inline void omi_cpu_relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
