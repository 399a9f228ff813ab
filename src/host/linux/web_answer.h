#pragma once

// Reads what a web server answers (RFC 9110, RFC 9112). A stranger writes it: a captive portal, or
// whoever has the address.

#include <string_view>

#include "host/host.h"

namespace braid {

/// The status and the redirection of the answer that begins so (RFC 9110): WebAnswer::status and
/// location. Status 0: it is none of HTTP.
WebAnswer readWebAnswer(std::string_view text);
/// Whether the text has the end of an answer's head.
bool hasWholeHead(std::string_view text);

}  // namespace braid
