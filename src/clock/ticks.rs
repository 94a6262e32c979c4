//! The processor's own counter.

/// What it shows. The processor reads it in passing, without waiting for what it has begun.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn read() -> u64 {
    safe_arch::read_timestamp_counter()
}

/// Whether it ticks at one speed, however fast the processor runs, and on while it sleeps.
#[cfg(target_arch = "x86_64")]
pub(super) fn are_steady() -> bool {
    use std::arch::x86_64::__cpuid;
    use std::sync::OnceLock;

    const POWER_MANAGEMENT: u32 = 0x8000_0007;
    const INVARIANT: u32 = 1 << 8;
    // Under a hypervisor, asking takes longer than a thousand decisions.
    static STEADY: OnceLock<bool> = OnceLock::new();
    *STEADY.get_or_init(|| {
        __cpuid(0x8000_0000).eax >= POWER_MANAGEMENT
            && __cpuid(POWER_MANAGEMENT).edx & INVARIANT != 0
    })
}

/// Elsewhere, the system's clock is all there is.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn read() -> u64 {
    0
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn are_steady() -> bool {
    false
}
