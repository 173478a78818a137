// Package image brings the parts of the SD-card image that are not ours: the Raspberry Pi's
// firmware and kernel, and a DHCP client. It is a module of its own, so that nothing of it
// is in agentsite.
package image

import (
	_ "github.com/gokrazy/firmware"
	_ "github.com/gokrazy/kernel.rpi"
)
