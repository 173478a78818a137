// Package kernel has the drivers for parts with a kernel driver: sensors, LEDs, PWM channels
// and buttons. One generic driver for each of the kernel's interfaces, such as IIO or hwmon,
// serves all parts with that interface (docs/kernel-parts.md).
//
// It reads and writes files below /sys and /dev only. A device needs no root privileges. agentsite
// prepare binds a chip to its driver or exports a PWM channel, through its Config's Prepare, and a
// fault says so. device/host reads the Raspberry Pi's throttling and under-voltage. The kernel
// controls the fans of a hwmon chip, because a stopped fan is not safe.
package kernel
