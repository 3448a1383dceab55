//! Memory for new payloads.

use bytes::Bytes;
#[cfg(feature = "mmap")]
use memmap2::MmapMut;

use super::error::TensorError;

/// Zeroed bytes, to be filled and then turned into a payload.
///
/// With the feature `mmap`, from [`MAPPED`](Buffer::MAPPED) bytes on, the memory is an anonymous map, on huge pages if available.
/// The system zeroes it on first touch, and has one page fault per 2 MiB instead of 4 KiB. Page faults would otherwise take most
/// of the time of a large copy.
pub(crate) enum Buffer {
    Heap(Vec<u8>),
    #[cfg(feature = "mmap")]
    Map(MmapMut),
}

impl Buffer {
    const MAPPED: usize = 4 << 20;

    /// # Errors
    /// The memory is not available.
    pub(crate) fn zeroed(bytes: usize) -> Result<Buffer, TensorError> {
        if bytes < Self::MAPPED {
            return Ok(Buffer::Heap(vec![0; bytes]));
        }
        #[cfg(feature = "mmap")]
        if let Ok(map) = MmapMut::map_anon(bytes) {
            // Advice only: systems that ignore it use small pages.
            #[cfg(target_os = "linux")]
            let _ = map.advise(memmap2::Advice::HugePage);
            return Ok(Buffer::Map(map));
        }
        // Systems and builds without anonymous maps use the heap.
        let mut heap = Vec::new();
        heap.try_reserve_exact(bytes).map_err(|_| TensorError::OutOfMemory { bytes })?;
        heap.resize(bytes, 0);
        Ok(Buffer::Heap(heap))
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        match self {
            Buffer::Heap(heap) => heap,
            #[cfg(feature = "mmap")]
            Buffer::Map(map) => map,
        }
    }
}

impl From<Buffer> for Bytes {
    fn from(buffer: Buffer) -> Bytes {
        match buffer {
            Buffer::Heap(heap) => heap.into(),
            #[cfg(feature = "mmap")]
            Buffer::Map(map) => Bytes::from_owner(map),
        }
    }
}
