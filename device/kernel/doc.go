// Package kernel has the drivers for parts that Linux drives: sensors, lamps, PWM channels
// and buttons that a kernel driver offers as files. One generic reader for each of the
// kernel's interfaces serves all the parts behind it (docs/kernel-parts.md).
//
// It reads and writes files below /sys and /dev only. A device never does what needs the
// superuser (binding a chip to its driver, exporting a PWM channel): its fault says what to
// run, and agentsite prepare runs its Config's Prepare. device/host reads the Raspberry
// Pi's throttling and under-voltage. Fans of a hwmon chip are left to the kernel, because a
// fan that stands still is not safe.
package kernel
