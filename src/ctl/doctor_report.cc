#include "ctl/doctor_report.h"

#include <nlohmann/json.hpp>

#include "ctl/format.h"

namespace braid {

nlohmann::json DoctorReport::toJson() const {
  using nlohmann::json;
  json out{{"findings", json::array()}, {"unknown", json::array()}, {"fine", json::array()}};
  for (const Finding& f : findings_)
    out["findings"].push_back({{"check", f.check}, {"what", f.what}, {"why", f.why}, {"remedy", f.remedy}});
  for (const Finding& f : unknown_) out["unknown"].push_back({{"check", f.check}, {"why", f.what}});
  for (const Finding& f : fine_) out["fine"].push_back({{"check", f.check}, {"what", f.what}});
  return out;
}

std::string DoctorReport::toText() const {
  std::string text;
  for (const Finding& f : findings_) {
    text += "WRONG    " + f.check + ": " + printable(f.what) + "\n";
    text +=
        "         " + printable(f.why.empty() ? "" : f.why + ". ") + "Remedy: " + printable(f.remedy) + "\n";
  }
  for (const Finding& f : unknown_) text += "UNKNOWN  " + f.check + ": " + printable(f.what) + "\n";
  for (const Finding& f : fine_) text += "fine     " + f.check + ": " + printable(f.what) + "\n";
  size_t n = findings_.size();
  return text +
         (n == 0 ? "nothing wrong was found" : std::to_string(n) + (n == 1 ? " finding" : " findings")) +
         (unknown_.empty() ? "\n" : "; not everything could be looked at\n");
}

}  // namespace braid
