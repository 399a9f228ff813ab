#include <openssl/asn1.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>

#include "ctl/doctor/doctor.h"
#include "ctl/views/format.h"
#include "gateway/dtls/identity.h"

namespace braid {
namespace {

constexpr uint64_t kLeastRoom =
    256 << 10;  // counts of uplinks and known initiators; a new file is written beside the old one
constexpr time_t kTolerance = 600;  // s
// 2025-01-01: no clock that is right shows an earlier time
constexpr time_t kFirstRelease = 1735689600;

// When the certificate was made; 0: unknown.
time_t birthOf(const std::string& certificate) {
  struct Close {
    void operator()(FILE* f) const { std::fclose(f); }
  };
  std::unique_ptr<FILE, Close> file(std::fopen(certificate.c_str(), "re"));
  if (!file) return 0;
  CertificateHandle x509(PEM_read_X509(file.get(), nullptr, nullptr, nullptr));
  std::tm utc{};
  if (!x509 || ASN1_TIME_to_tm(X509_get0_notBefore(x509.get()), &utc) != 1) return 0;
  return ::timegm(&utc);
}

void checkClock(const Patient& patient, DoctorReport& report) {
  time_t now = std::time(nullptr), latest = kFirstRelease;
  std::string witness = "Braid's first release was made";
  if (time_t born = birthOf(patient.config.identity.certificate); born > latest) {
    latest = born;
    witness = "this gateway's certificate was made";
  }
  struct stat info {};
  if (::stat(patient.config.path.c_str(), &info) == 0 && info.st_mtime > latest) {
    latest = info.st_mtime;
    witness = patient.config.path + " was written";
  }
  if (now + kTolerance >= latest) return report.fine("clock", formatDate(static_cast<double>(now)));
  report.wrong({"clock",
                "it says " + formatDate(static_cast<double>(now)) + ", and " + witness + " " +
                    formatAge(static_cast<double>(latest - now)) + " later",
                "periods of metered uplinks, the times of the log and of invitations are wrong",
                "set it (timedatectl set-ntp true, or date --set), and see to a clock that is "
                "right at the start"});
}

bool isFolder(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// Checks a folder that the daemon writes to; `use` says for what. The daemon or its unit creates
// the usual state folder.
void checkFolder(const Patient& patient, const std::string& file, const std::string& use,
                 DoctorReport& report) {
  std::string folder = std::filesystem::path(file).parent_path();
  if (!isFolder(folder)) {
    if (!patient.daemon && folder == kStateFolder &&
        isFolder(std::filesystem::path(folder).parent_path()))
      return report.fine("files", folder + " is made by the daemon");
    return report.wrong(
        {"files", "no folder " + folder + ": " + std::strerror(errno), "no place for " + use,
         "start the daemon by its unit, which makes it, or: install -d -o braid " + folder});
  }
  if (::geteuid() != 0 && ::access(folder.c_str(), W_OK) != 0 && !patient.daemon)
    report.unknown(
        "files", "whether the daemon may write to " + folder + ": run doctor as root or its user");
  struct statvfs room {};
  if (::statvfs(folder.c_str(), &room) != 0)
    return report.unknown("files", folder + ": " + std::strerror(errno));
  if ((room.f_flag & ST_RDONLY) != 0) {
    return report.wrong({"files", folder + " is on a file system that is read-only",
                         "no place for " + use, "mount it writable, or set another path"});
  }
  uint64_t free = static_cast<uint64_t>(room.f_bavail) * room.f_frsize;
  bool full = free < kLeastRoom || (room.f_files > 0 && room.f_favail < 8);
  if (!full) return report.fine("files", folder + " has room");
  report.wrong({"files",
                "the disk of " + folder + " is full: " + formatBytes(static_cast<double>(free)) +
                    " and " + std::to_string(room.f_favail) + " files left",
                "no room for " + use,
                "delete something there (journalctl --vacuum-size=50M, say)"});
}

}  // namespace

void checkFiles(const Patient& patient, DoctorReport& report) {
  const Config& config = patient.config;
  checkClock(patient, report);
  bool metered = std::any_of(config.uplinks.begin(), config.uplinks.end(),
                             [](const UplinkConfig& u) { return u.meter.has_value(); });
  if (metered)
    checkFolder(patient, config.state, "the counts of metered uplinks, which begin anew", report);
  if (!config.listen.empty())
    checkFolder(patient, config.state, "the peers that came here, who wait longer after a restart",
                report);
  if (!patient.daemon) checkFolder(patient, config.control.socket, "the control socket", report);
  if (!config.trace.empty()) checkFolder(patient, config.trace, "the recovery trace", report);
}

}  // namespace braid
