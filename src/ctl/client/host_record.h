#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "inet/addresses.h"

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

/// What a verb needs at the next boot, in files of /var/lib/braid-host: the configuration as it was
/// last read without a mistake, because somebody may have edited it since, and the networks of
/// LANs, because they may not be there yet. Only changes are written. Errors of writing are
/// ignored: then an older state is read next time, or none.
class KeptConfig {
 public:
  /// When there are more networks, the oldest are forgotten.
  static constexpr size_t kMostNetworks = 32;

  /// `config`: path of the configuration. `root`: a folder used instead of /.
  explicit KeptConfig(const std::string& config, const std::string& root = {});

  /// The text; nullopt: none is kept.
  std::optional<std::string> read() const;
  /// Keeps the configuration's present text.
  void keep() const;
  /// The networks, those that came last first.
  std::vector<Prefix> networks() const;
  /// Keeps networks that are seen now beside the earlier ones.
  void keepNetworks(std::vector<Prefix> seen) const;
  void remove() const;

 private:
  void write(const std::string& path, const std::string& text) const;

  std::string config_, folder_, path_, networksPath_;
};

}  // namespace braid
