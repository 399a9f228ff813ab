#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

/// Who may look. Without a token everybody who can connect; the socket is a loopback one then.
class Access {
 public:
  static constexpr size_t kShortestToken = 16;  ///< bytes

  /// `hosts`: names under which this host is known to browsers. `token`: empty for none.
  explicit Access(std::vector<std::string> hosts = {}, std::string token = {});

  /// A page of somebody else can make a browser send requests to a name that it lets point here (DNS rebinding), and
  /// read the answers. It cannot do so with an address or a name that is this host's own: only these are served.
  bool isOwnHost(std::string_view host) const;
  /// `authorization`: the header's value. "Bearer TOKEN", or "Basic" with the token as password, which browsers ask for.
  bool isLetIn(const std::optional<std::string>& authorization) const;
  bool wantsToken() const { return !token_.empty(); }

 private:
  std::vector<std::string> hosts_;
  std::string token_;
};

}  // namespace braid
