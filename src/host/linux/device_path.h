#pragma once

#include <string>
#include <string_view>

namespace braid {

/// Where a device is plugged in, in the form of udev's ID_PATH, which networkctl and udevadm show:
/// "pci-0000:03:00.0", "pci-0000:00:14.0-usb-0:2.1:1.0", "platform-30be0000.ethernet". It is the
/// same after each boot, whatever the kernel calls the interface. `folder`: the device's folder in
/// sysfs, such as "/sys/devices/pci0000:00/0000:00:14.0/usb1/1-2/1-2:1.0". Empty when it is at none
/// of the buses that are known here (PCI, USB, platform).
std::string devicePath(std::string_view folder);

/// devicePath() of an interface of this host; empty for a virtual interface, and when it is gone.
std::string devicePathOf(const std::string& interface);

}  // namespace braid
