#pragma once

namespace braid {

/// Memory that is kept for when the system gives none. Destructors of libraries allocate too (nlohmann-json's), and what
/// fails there ends the process without a farewell: so the first allocation that fails gets it, and the daemon, which
/// then does not get it again, ends in good order.
///
/// Takes it unless it is held, and sees to it that operator new gives it away. False: there is no memory for it.
bool holdMemoryReserve() noexcept;
/// Gives it to whoever allocates next, of any thread. False: it is gone already.
bool releaseMemoryReserve() noexcept;

}  // namespace braid
