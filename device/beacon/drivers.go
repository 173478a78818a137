// Package beacon has drivers of Bluetooth devices that advertise what they measure. They only listen: no device is
// connected to, paired or written.
package beacon

import (
	"context"
	"time"

	"agentsite/device/driver"
)

// Drivers returns the drivers of this package. All their devices share one scan of one Bluetooth adapter, which lasts
// as long as one of them is open.
func Drivers() []driver.Driver { return drivers(bluez{quiet: quietMin}) }

func drivers(r radio) []driver.Driver {
	s := &scanner{radio: r, retryMax: scanRetryMax}
	var all []driver.Driver
	for _, f := range families {
		d := driver.Driver{
			Name: f.driver, Doc: f.doc, Also: f.also, Entry: f.entry, Note: f.note,
			Config: func() driver.Config { return f.config(s, f) },
		}
		if f == &bthome { // one search is for all
			d.Seek = func(ctx context.Context) ([]driver.Found, error) { return seek(ctx, r) }
		}
		all = append(all, d)
	}
	return all
}

var families = []*family{&bthome, &pvvx, &ruuvi}

var bthome = family{
	driver: "bthome", doc: "BTHome v2: thermometers, buttons, door and motion sensors that advertise by Bluetooth",
	also:      "bluetooth ble shelly-blu blu-ht blu-door blu-motion blu-button b-parasite",
	entry:     "{ driver: bthome, address: A4:C1:38:01:02:03, inputs: [temperature, humidity, battery] }",
	note:      bluetoothNote,
	lostAfter: 5 * time.Minute, read: readBTHome,
	config: func(s *scanner, f *family) driver.Config { return &bthomeConfig{common: newCommon(s, f)} },
}

var pvvx = family{
	driver:    "pvvx",
	doc:       "Xiaomi's thermometers with the firmware of pvvx or atc1441 (LYWSD03MMC and others), by Bluetooth",
	also:      "atc atc1441 atc-mithermometer lywsd03mmc mho-c401 cgg1 mjwsd05mmc xiaomi",
	entry:     "{ driver: pvvx, address: A4:C1:38:01:02:03 }",
	note:      bluetoothNote + " If the firmware's advertising type is BTHome, write `driver: bthome`.",
	lostAfter: 3 * time.Minute, read: readPVVX,
	config: func(s *scanner, f *family) driver.Config { return &pvvxConfig{newCommon(s, f)} },
}

var ruuvi = family{
	driver: "ruuvi", doc: "RuuviTag and Ruuvi Air: temperature, humidity, pressure and more, by Bluetooth",
	also:      "ruuvitag ruuvi-air",
	entry:     "{ driver: ruuvi, address: CB:B8:33:4C:88:4F }",
	note:      bluetoothNote,
	lostAfter: time.Minute, read: readRuuvi,
	config: func(s *scanner, f *family) driver.Config { return &ruuviConfig{common: newCommon(s, f), Model: "tag"} },
}

const bluetoothNote = "It needs a Bluetooth adapter and BlueZ, and the group `bluetooth`."
