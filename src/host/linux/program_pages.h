#pragma once

namespace braid {

/// Gives back the program's and its libraries' pages of code and constants, which the kernel maps again, from its cache
/// of files, when they are needed. Most of them serve a start and a handshake only, and the kernel takes what no
/// process maps first when memory is short. A page that is needed again costs about a microsecond.
void returnProgramPages() noexcept;

}  // namespace braid
