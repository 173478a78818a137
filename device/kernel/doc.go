// Package kernel is what Linux already drives: sensors, lamps, PWM channels and
// buttons that a kernel driver offers as files. One generic reader for each of the
// kernel's interfaces serves all the parts behind it (docs/kernel-parts.md).
//
// It reads and writes files below /sys and /dev and nothing else. What needs the
// superuser (binding a chip to its driver, exporting a PWM channel) a device never
// does: its fault says what to run, and its Config prepares it for agentsite
// prepare. The Raspberry Pi's throttling and under-voltage
// are read by device/host, and fans that a hwmon chip drives are left to the
// kernel, because a fan that stands still is not safe.
package kernel
