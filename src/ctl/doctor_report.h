#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace braid {

/// One thing that is wrong, or that could not be looked at.
struct Finding {
  std::string check;   ///< what was looked at: "device", "rp-filter", ...
  std::string what;    ///< what is so, in one line
  std::string why;     ///< what comes of it
  std::string remedy;  ///< what to do about it
};

/// What `braidctl doctor` found.
class DoctorReport {
 public:
  void wrong(Finding finding) { findings_.push_back(std::move(finding)); }
  /// It could not be looked at: `why` says what prevented it.
  void unknown(std::string check, std::string why) {
    unknown_.push_back({std::move(check), std::move(why), {}, {}});
  }
  /// It is as it should be; `what` for who wants to know.
  void fine(std::string check, std::string what) {
    fine_.push_back({std::move(check), std::move(what), {}, {}});
  }

  const std::vector<Finding>& findings() const { return findings_; }
  const std::vector<Finding>& unknowns() const { return unknown_; }

  nlohmann::json toJson() const;
  std::string toText() const;

 private:
  std::vector<Finding> findings_, unknown_, fine_;
};

}  // namespace braid
