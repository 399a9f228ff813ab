#pragma once

#include <iosfwd>
#include <optional>
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
  /// False when the file cannot be written.
  bool write(const std::vector<std::string>& words) const;
  void remove() const;
  const std::string& path() const { return path_; }

  /// The configurations that have a record of this kind, as complete paths with the ending .yaml.
  /// `root`: a folder used instead of /.
  static std::vector<std::string> configsWith(const std::string& kind,
                                              const std::string& root = {});

 private:
  std::string path_;
};

/// The words as they stand in the file, in quotation marks: they may have white space.
void writeWords(std::ostream& out, const std::vector<std::string>& words);
std::vector<std::string> readWords(std::istream& in);

/// A configuration as a verb last read it without a mistake, kept over boots in a file of
/// /var/lib/braid-host: for what must not fail when somebody has edited the configuration since.
class KeptConfig {
 public:
  /// `config`: path of the configuration.
  explicit KeptConfig(const std::string& config);

  /// The text; nullopt: none is kept.
  std::optional<std::string> read() const;
  /// Keeps the configuration's present text. Writes only a change. Errors are ignored: then the
  /// next read() returns an older text or none.
  void keep() const;
  void remove() const;

 private:
  std::string config_, path_;
};

}  // namespace braid
