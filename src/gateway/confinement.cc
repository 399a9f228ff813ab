#include "gateway/confinement.h"

#include <pwd.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "host/linux/forwarding.h"
#include "host/linux/landlock.h"
#include "host/linux/process.h"
#include "host/linux/system_call_filter.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

// What the daemon reads beside its configuration: name servers of the host and its links, hosts,
// users, time zone, settings of OpenSSL; interfaces, what br_netfilter does; randomness.
// link_resolvers.cc, device_path.cc and bridge_filter.cc name the files.
constexpr const char* kRead[] = {
    "/etc",      "/run",           "/usr",         "/lib",          "/lib64",
    "/proc/sys", "/sys/class/net", "/sys/devices", "/var/lib/dhcp", "/tmp/resolv.conf.d",
    "/dev/null", "/dev/random",    "/dev/urandom"};
// `forwarding`
constexpr const char* kWritten[] = {"/ipv4/conf", "/ipv6/conf"};
// Folders that are the daemon's alone.
constexpr const char* kOwnFolders[] = {"/run/braid", kStateFolder};

fs::path folderOf(const std::string& path) {
  fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

// The folder of a file's name, and the one where it is in truth.
void addFolders(const std::string& path, std::vector<std::string>& to) {
  std::error_code ignored;
  to.push_back(folderOf(path).string());
  to.push_back(folderOf(fs::weakly_canonical(path, ignored).string()).string());
}

// The folders in which the daemon makes, replaces and removes files.
std::set<fs::path> writtenFolders(const Config& config) {
  std::set<fs::path> out;
  for (const std::string& path :
       {config.control.socket, config.state, config.peersFolder, config.trace}) {
    if (!path.empty()) out.insert(folderOf(path));
  }
  return out;
}

AllowedFiles filesOf(const Config& config) {
  AllowedFiles out{{std::begin(kRead), std::end(kRead)}, {}, {}};
  addFolders(config.path, out.read);
  addFolders("/etc/resolv.conf", out.read);
  for (const PeerConfig& peer : config.peers) {
    if (!peer.psk.empty()) addFolders(peer.psk, out.read);
  }
  for (const char* folder : {Forwarding::kFolder, Forwarding::kServiceFolder})
    for (const char* written : kWritten) out.write.push_back(std::string(folder) + written);
  for (const fs::path& folder : writtenFolders(config)) out.make.push_back(folder.string());
  return out;
}

// A folder of ours that root's daemon has used, and so belongs to root.
bool isToBeGiven(const fs::path& folder) {
  struct stat info {};
  return std::ranges::find(kOwnFolders, folder) != std::end(kOwnFolders) &&
         ::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == 0;
}

// Keeps a group that is not root's: `control.group`.
void give(const fs::path& path, const passwd& user) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return;
  [[maybe_unused]] int given =
      ::lchown(path.c_str(), user.pw_uid, info.st_gid == 0 ? user.pw_gid : static_cast<gid_t>(-1));
}

// The folder itself comes last: before that, nobody else can put anything into it.
void giveWhole(const fs::path& folder, const passwd& user) {
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error))
    give(it->path(), user);
  give(folder, user);
}

// Adds the files in a folder whose names begin with this.
void addFiles(const fs::path& folder, const std::string& begin, std::vector<NeededAccess>& to) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().filename().string().starts_with(begin))
      to.push_back({it->path().string(), R_OK});
  }
}

// What the user must be able to read and write, of what is not given to it.
std::vector<NeededAccess> neededBy(const Config& config, const std::set<fs::path>& written) {
  std::vector<NeededAccess> out{{config.path, R_OK}};
  for (const PeerConfig& peer : config.peers) {
    if (!peer.psk.empty()) out.push_back({peer.psk, R_OK});
  }
  for (const fs::path& folder : written) {
    if (!isToBeGiven(folder)) out.push_back({folder.string(), R_OK | W_OK | X_OK});
  }
  const fs::path state(config.state), peers(config.peersFolder);
  if (!isToBeGiven(state.parent_path())) addFiles(state.parent_path(), state.filename(), out);
  if (!peers.empty() && !isToBeGiven(peers.parent_path())) {
    out.push_back({peers.string(), R_OK | W_OK | X_OK});
    addFiles(peers, "", out);
  }
  return out;
}

// Returns why the process stays root's; empty: it has become the service's user.
std::string becomeServiceUser(const Config& config) {
  const passwd* user = ::getpwnam(kServiceUser);
  if (!user) return std::string("there is no user '") + kServiceUser + "'";
  const std::set<fs::path> written = writtenFolders(config);
  if (std::string why = obstacleAs(kServiceUser, neededBy(config, written)); !why.empty())
    return std::string("'") + kServiceUser + "': " + why;
  for (const fs::path& folder : written) {
    if (isToBeGiven(folder)) giveWhole(folder, *user);
  }
  give(config.control.socket, *user);
  becomeUser(kServiceUser);
  return {};
}

// What a sanitizer does at the end of the process, tracing its threads, would be refused. GCC
// defines macros for its sanitizers, clang has __has_feature().
#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr const char* kBuild = "this build has a sanitizer, which needs more";
#else
constexpr const char* kBuild = "";
#endif

void report(const char* what, const std::string& why, std::vector<std::string>& missing) {
  if (why.empty()) {
    spdlog::info("confined to the {} that it needs", what);
  } else {
    spdlog::info("not confined to the {} that it needs: {}", what, why);
    missing.push_back(std::string(what) + ": " + why);
  }
}

}  // namespace

std::vector<std::string> confine(const Config& config, bool changeUser) {
  std::vector<std::string> missing;
  const bool dumps = ::prctl(PR_GET_DUMPABLE) == 1;  // a change of the user affects it
  std::string whyRoot = "'--user' says so";
  if (::geteuid() == 0 && changeUser) whyRoot = becomeServiceUser(config);
  dropPrivileges();
  allowDumps(dumps);
  if (::geteuid() == 0) {
    spdlog::warn("runs as root, without most of its capabilities: {}", whyRoot);
    missing.push_back("user: root's, " + whyRoot);
  } else {
    spdlog::info("runs as user {}, without most of its capabilities", ::geteuid());
  }
  report("files", *kBuild ? kBuild : restrictFiles(filesOf(config)), missing);
  report("system calls", *kBuild ? kBuild : restrictSystemCalls(), missing);
  return missing;
}

}  // namespace braid
