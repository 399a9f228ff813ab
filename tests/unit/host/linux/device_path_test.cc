#include "host/linux/device_path.h"

#include <gtest/gtest.h>

namespace braid::device_path_test {
namespace {

TEST(DevicePath, IsWhatUdevSays) {
  struct Case {
    const char *folder, *path;
  };
  for (const Case& c : {
           Case{"/sys/devices/pci0000:00/0000:00:1c.4/0000:03:00.0", "pci-0000:03:00.0"},
           Case{"/sys/devices/pci0000:00/0000:00:03.0/virtio0", "pci-0000:00:03.0"},
           Case{"/sys/devices/pci0000:00/0000:00:14.0/usb1/1-2/1-2:1.0",
                "pci-0000:00:14.0-usb-0:2:1.0"},
           Case{"/sys/devices/pci0000:00/0000:00:14.0/usb3/3-2/3-2.1/3-2.1:1.4",
                "pci-0000:00:14.0-usb-0:2.1:1.4"},
           Case{"/sys/devices/platform/soc/30be0000.ethernet", "platform-30be0000.ethernet"},
           Case{"/sys/devices/platform/soc@0/30800000.bus/30be0000.ethernet",
                "platform-30be0000.ethernet"},
           Case{"/sys/devices/platform/scb/fd580000.ethernet", "platform-fd580000.ethernet"},
           Case{"/sys/devices/virtual/net/tun0", ""},
           Case{"", ""},
           Case{"1-", ""},
           Case{"::.", ""},
       }) {
    EXPECT_EQ(devicePath(c.folder), c.path) << c.folder;
  }
}

// Two equal modems differ by their ports only, and the number of their bus may change.
TEST(DevicePath, TellsEqualModemsApart) {
  std::string pci = "/sys/devices/pci0000:00/0000:00:14.0/";
  EXPECT_NE(devicePath(pci + "usb1/1-2/1-2:1.0"), devicePath(pci + "usb1/1-3/1-3:1.0"));
  EXPECT_EQ(devicePath(pci + "usb1/1-2/1-2:1.0"), devicePath(pci + "usb2/2-2/2-2:1.0"));
}

}  // namespace
}  // namespace braid::device_path_test
