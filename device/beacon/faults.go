package beacon

import "agentsite/device"

// Why an advertisement was not read. errOther is one in another format or of another device, which is ignored.
var (
	errOther = device.Faultf(device.Invalid,
		"it advertises nothing that this driver reads; agentsite scan shows which driver does")
	errShort  = device.Faultf(device.Invalid, "its advertisement is cut off; update its firmware")
	errLocked = device.Faultf(device.Invalid,
		"it is encrypted; write its key to a file beside the configuration, and key_file: NAME.key")
	errPlain = device.Faultf(device.Invalid,
		"it is not encrypted, and anyone near could send that; turn its encryption on, or remove key_file")
	errKey = device.Faultf(device.Invalid,
		"its key does not fit; compare key_file with the key in the app of the device")
)

// errRepeated is an encrypted advertisement that was heard before.
var errRepeated = device.Faultf(device.Invalid, "it repeats itself")

// errStarting is why nothing is heard before the first scan has begun.
var errStarting = device.Faultf(device.Offline, "the Bluetooth scan has not started yet")
