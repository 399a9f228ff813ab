#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace braid {

/// Fewest bytes of an answer worth compressing: a shorter one takes one or two packets anyway.
inline constexpr size_t kLeastToCompress = 2000;

/// Whether a request's Accept-Encoding accepts gzip (RFC 9110 section 12.5.3).
bool takesGzip(std::string_view acceptEncoding);
/// The text as gzip (RFC 1952); nullopt: not enough memory.
std::optional<std::string> gzipOf(std::string_view text);

}  // namespace braid
