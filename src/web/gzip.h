#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace braid {

/// An answer is worth that from so many bytes on: fewer are one or two packets anyway. Ours.
inline constexpr size_t kLeastToCompress = 2000;

/// Whether a request's Accept-Encoding takes gzip (RFC 9110 section 12.5.3).
bool takesGzip(std::string_view acceptEncoding);
/// The text as gzip (RFC 1952); nullopt: there is no memory for it.
std::optional<std::string> gzipOf(std::string_view text);

}  // namespace braid
