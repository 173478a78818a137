package state

import "agentsite/device/driver"

// Secret is driver.Secret.
func Secret(folder, name string) (string, error) { return driver.Secret(folder, name) }
