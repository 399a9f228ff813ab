#pragma once

namespace braid {

/// Large blocks go back to the machine when they are freed, for as long as the process lives. Without this the first
/// large block that is freed teaches glibc to take such blocks from its heap (mallopt(3), dynamic mmap threshold), where
/// a small block behind a freed table of a peer keeps all of the table's memory.
void returnLargeBlocks() noexcept;

}  // namespace braid
