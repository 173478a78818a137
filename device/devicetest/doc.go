// Package devicetest is the conformance suite that every device passes, real,
// played back or simulated. It holds a device to the contract that package device
// writes down, and to nothing else.
//
//	func TestConformance(t *testing.T) {
//		devicetest.Run(t, func(t *testing.T) device.Device { return openFake(t) })
//	}
package devicetest
