//! The clock: the system's or, on `wasm32-unknown-unknown`, which has none, the one that the program sets.

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub use std::time::Instant;

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
pub use set::{Instant, set};

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
mod set {
    use std::ops::Add;
    use std::sync::OnceLock;
    use std::time::Duration;

    static CLOCK: OnceLock<fn() -> Duration> = OnceLock::new();

    /// Sets the clock: a function that returns the time since a fixed moment and never decreases. The first call counts. Without a clock, every
    /// duration is 0, so that no limit of time applies.
    pub fn set(clock: fn() -> Duration) {
        let _ = CLOCK.set(clock);
    }

    /// A moment, with the part of `std::time::Instant` that the library needs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct Instant(Duration);

    impl Instant {
        /// Returns the present moment.
        pub fn now() -> Self {
            Instant(CLOCK.get().map_or(Duration::ZERO, |clock| clock()))
        }

        /// Returns the time since this moment.
        pub fn elapsed(self) -> Duration {
            Instant::now().0.saturating_sub(self.0)
        }
    }

    impl Add<Duration> for Instant {
        type Output = Instant;

        fn add(self, duration: Duration) -> Instant {
            Instant(self.0.saturating_add(duration))
        }
    }
}
