package beacon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
)

const (
	seekTime = 10 * time.Second
	// maxFound limits the devices of one search: what is sent around decides how many there are.
	maxFound = 64
)

// Shelly's names of its devices, which they advertise: https://shelly-api-docs.shelly.cloud/docs-ble.
var shelly = map[string]string{
	"SBBT-002C": "Shelly BLU Button1", "SBBT-102C": "Shelly BLU Button1 ZB",
	"SBDW-002C": "Shelly BLU Door/Window", "SBDW-103C": "Shelly BLU Door/Window ZB",
	"SBMO-003Z": "Shelly BLU Motion", "SBHT-003C": "Shelly BLU H&T", "SBHT-203C": "Shelly BLU H&T ZB",
	"SBHT-103C": "Shelly BLU H&T Display ZB", "SBBT-004CEU": "Shelly BLU Wall Switch 4",
	"SBBT-004CUS": "Shelly BLU RC Button 4", "SBTR-001AEU": "Shelly BLU TRV",
}

// finding holds the findings of a search about one device.
type finding struct {
	of     *family
	from   address
	inputs []string
	locked bool
	sleepy bool
	model  byte // of Ruuvi
}

// identity holds the facts of a radio about a device besides its advertisements.
type identity struct {
	name    string
	private bool // its address changes by and by
}

// identifier is a radio that knows identities.
type identifier interface {
	identify(ctx context.Context, all []address) map[address]identity
}

// seek listens for devices of all families. Without any Bluetooth there are none, which is no error.
func seek(ctx context.Context, r radio) ([]driver.Found, error) {
	listening, cancel := context.WithTimeout(ctx, seekTime)
	defer cancel()
	var mu sync.Mutex
	found, started := make(map[address]*finding), false
	err := r.hear(listening, listener{
		started: func() { started = true },
		heard: func(ad *advert) {
			mu.Lock()
			defer mu.Unlock()
			for _, f := range families {
				f.keep(found, ad)
			}
		},
	})
	if !started {
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			err = device.Faultf(device.Offline, "the Bluetooth scan did not start in time")
		}
		if radios, _ := os.ReadDir("/sys/class/bluetooth"); len(radios) == 0 {
			return nil, nil
		}
		return nil, err
	}
	mu.Lock()
	defer mu.Unlock()
	var known map[address]identity
	if of, ok := r.(identifier); ok {
		known = of.identify(ctx, slices.Collect(maps.Keys(found)))
	}
	var all []driver.Found
	for _, d := range found {
		all = append(all, d.offer(known[d.from]))
	}
	if len(found) == maxFound {
		all = append(all, driver.Found{Where: "Bluetooth", What: "many devices", Says: fmt.Sprintf("only the first %d are shown; scan again nearer to yours", maxFound)})
	}
	slices.SortFunc(all, func(a, b driver.Found) int { return strings.Compare(a.Where, b.Where) })
	return all, nil
}

// keep keeps what ad says of its device, if it is of the family.
func (f *family) keep(found map[address]*finding, ad *advert) {
	d := found[ad.from]
	if d == nil && len(found) == maxFound {
		return
	}
	said, n, err := f.read(nil, ad, nil)
	locked := err == error(errLocked)
	if err != nil && !locked {
		return
	}
	if d == nil {
		d = &finding{of: f, from: ad.from}
		found[ad.from] = d
	}
	if f == &bthome {
		d.of, d.locked, d.sleepy = f, locked, n.sleepy // of several formats of a device the best one
	}
	if d.of != f {
		return
	}
	if data := find(ad.maker, ruuviMaker); len(data) > 0 {
		d.model = data[0]
	}
	for _, s := range said {
		name := inputName(s)
		if !slices.Contains(d.inputs, name) && len(d.inputs) < maxInputs {
			d.inputs = append(d.inputs, name)
		}
	}
}

// inputName is the name of a point in the configuration.
func inputName(s said) string {
	if s.nth == 1 {
		return s.name
	}
	return fmt.Sprintf("%s-%d", s.name, s.nth)
}

// offer returns a device that was found, with its keys.
func (d *finding) offer(is identity) driver.Found {
	f, at := d.of, d.from.String()
	what, short := map[string]string{"bthome": "BTHome device", "pvvx": "Xiaomi thermometer with pvvx or atc1441 firmware", "ruuvi": "RuuviTag"}[f.driver], f.driver
	keys := "driver: " + f.driver + ", address: " + at
	switch {
	case f == &ruuvi && d.model == ruuviAir:
		what, keys = "Ruuvi Air", keys+", model: air"
	case f == &bthome:
		if known := shelly[is.name]; known != "" {
			what, short = known, known
		} else if strings.HasPrefix(is.name, "ATC_") {
			what, short = "Xiaomi thermometer with pvvx firmware, BTHome", "thermometer"
		}
		slices.Sort(d.inputs)
		inputs := strings.Join(d.inputs, ", ")
		if d.locked {
			inputs = "temperature, humidity, battery"
			keys += ", key_file: " + device.SuggestName(short) + ".key"
		}
		keys += ", inputs: [" + inputs + "]"
		if d.sleepy {
			keys += ", lost_after: 24h"
		}
	}
	found := driver.Found{Where: at, What: what, Name: device.SuggestName(short + "-" + at[12:14] + at[15:17]), YAML: "{ " + keys + " }"}
	switch {
	case is.private:
		found.YAML = ""
		found.Says = "its address changes by and by, so that it cannot be named; turn that off in its app"
	case d.locked:
		found.YAML = ""
		found.Says = "it is encrypted: write its key, 32 hexadecimal digits from its app (pvvx: TelinkMiFlasher, Bind " +
			"Key), to a file beside the configuration, and then { " + keys + " } with what it measures"
	case f == &bthome && len(d.inputs) == 0:
		found.YAML = ""
		found.Says = "it advertised no value while agentsite listened; press its button, or wait, and scan again"
	default:
		found.Says = "it is not encrypted: anybody near can send in its name"
	}
	return found
}

// identify asks BlueZ, which remembers a device for some minutes.
func (z bluez) identify(ctx context.Context, all []address) map[address]identity {
	s, known := new(scan), make(map[address]identity)
	if s.connect(ctx, z.bus) != nil {
		return nil
	}
	defer s.conn.Close()
	if s.find(ctx) != nil {
		return nil
	}
	for _, a := range all {
		kind := s.property(ctx, a, "AddressType")
		// The two highest bits of a static random address are set.
		known[a] = identity{s.property(ctx, a, "Name"), kind == "random" && a[0]>>6 != 3}
	}
	return known
}
