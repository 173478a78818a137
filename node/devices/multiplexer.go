package devices

import (
	"errors"

	"agentsite/device/board"
	"agentsite/device/driver"
	"agentsite/node/config"
)

// checkMultiplexers refuses a multiplexer that this program switches if an output is on its bus.
// Two processes use that bus, and only the kernel can select a channel and transfer atomically.
func checkMultiplexers(cfg *config.Site) error {
	outputs := make(map[string]string) // by bus: the first device with outputs
	each := func(look func(d config.Device, bus, mux string)) {
		for _, d := range cfg.Devices {
			claimer, ok := d.Config.(driver.ResourceUser)
			if !ok {
				continue
			}
			for _, c := range claimer.Resources() {
				if bus, mux, ok := board.OnI2C(c); ok {
					look(d, bus, mux)
				}
			}
		}
	}
	each(func(d config.Device, bus, _ string) {
		if outputs[bus] == "" && hasOutputs(d) {
			outputs[bus] = d.Name
		}
	})
	var errs []error
	each(func(d config.Device, bus, mux string) {
		if mux != "" && outputs[bus] != "" {
			errs = append(errs, d.Errorf("", "bus", "%s: the multiplexer at %s on %s needs its kernel driver, because %s has outputs on that bus: "+
				"add dtoverlay=i2c-mux,pca9548,addr=%[2]s to config.txt, and write the bus that agentsite scan then shows for the channel, such as i2c-11", d.Name, mux, bus, outputs[bus]))
		}
	})
	return errors.Join(errs...)
}
