//! Time stamp counter of the processor.

/// Returns the counter. Does not wait for instructions that have been started.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn read() -> u64 {
    safe_arch::read_timestamp_counter()
}

/// Returns whether the counter is invariant: its rate does not depend on the frequency and the sleep
/// states of the processor.
#[cfg(target_arch = "x86_64")]
pub(super) fn are_steady() -> bool {
    use std::arch::x86_64::__cpuid;
    use std::sync::OnceLock;

    const POWER_MANAGEMENT: u32 = 0x8000_0007;
    const INVARIANT: u32 = 1 << 8;
    // Under a hypervisor, `cpuid` takes longer than a thousand decisions.
    static STEADY: OnceLock<bool> = OnceLock::new();
    *STEADY.get_or_init(|| {
        __cpuid(0x8000_0000).eax >= POWER_MANAGEMENT
            && __cpuid(POWER_MANAGEMENT).edx & INVARIANT != 0
    })
}

/// Other architectures use the system clock only.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn read() -> u64 {
    0
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn are_steady() -> bool {
    false
}
