#pragma once

namespace braid {

/// From now on, freed large blocks return to the system at once. Without this, glibc raises its
/// mmap threshold when the first large block is freed (mallopt(3), dynamic mmap threshold), and
/// takes later large blocks from its heap. There a small block after the freed table of a peer
/// would keep all of the table's memory.
void returnLargeBlocks() noexcept;

/// A memory reserve for the case that the system has no memory left. Destructors of libraries
/// (nlohmann-json's) may allocate memory, and a failure there ends the process at once. So the
/// first allocation that fails gets the reserve. The daemon notices that it cannot get the reserve
/// again, and ends in an orderly way.
///
/// Allocates the reserve unless it is held, and makes operator new release it on failure. False:
/// there is no memory for it.
bool holdMemoryReserve() noexcept;
/// Frees the reserve for the next allocation of any thread. False: it was already used.
bool releaseMemoryReserve() noexcept;

/// Unmaps the pages of code and constants of the program and its libraries; the kernel maps them
/// again from its page cache when they are needed. Most of them are used only at start and in
/// handshakes, and when memory is short, the kernel first reclaims pages that no process has
/// mapped. A page that is needed again costs about a microsecond.
void returnProgramPages() noexcept;

}  // namespace braid
