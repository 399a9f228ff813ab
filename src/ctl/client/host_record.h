#pragma once

#include <string>
#include <vector>

namespace braid {

/// What a verb has changed at this host until the next boot: some words in a file of
/// /run/braid-host. It is named by the configuration's path, so a verb can take the change back
/// when the configuration says something else by then, has mistakes or is gone. Root alone may make
/// files there, so nobody else can put a link in its place.
class HostRecord {
 public:
  /// `config`: path of the configuration. `kind`: what was changed, such as "dns".
  HostRecord(const std::string& config, const std::string& kind);

  /// Empty: nothing is recorded.
  std::vector<std::string> read() const;
  /// The words must not have white space. False when the file cannot be written.
  bool write(const std::vector<std::string>& words) const;
  void remove() const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace braid
