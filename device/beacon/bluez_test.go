//go:build linux

package beacon

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/device"
	"agentsite/device/driver"

	"github.com/godbus/dbus/v5"
)

// messageBus starts a message bus for a test, and returns its address.
func messageBus(t *testing.T) string {
	t.Helper()
	daemon, err := exec.LookPath("dbus-daemon")
	if err != nil {
		t.Skip("dbus-daemon is not installed")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "bus.conf")
	if err := os.WriteFile(file, []byte(`<busconfig><listen>unix:path=`+dir+`/bus</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*"/><allow own="*"/><allow eavesdrop="true"/></policy></busconfig>`), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(daemon, "--nofork", "--nosyslog", "--config-file="+file, "--print-address")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(address)
}

// fakeBlueZ is org.bluez with one adapter, hci0, as the manual pages org.bluez.Adapter(5) and org.bluez.Device(5)
// describe it.
type fakeBlueZ struct {
	conn *dbus.Conn

	mu       sync.Mutex
	powered  bool
	scanning map[string]bool // by client
	restarts int             // scans that their client ended
	filters  []map[string]dbus.Variant
	known    map[dbus.ObjectPath]map[string]dbus.Variant
}

func startBlueZ(t *testing.T, bus string) *fakeBlueZ {
	t.Helper()
	conn, err := dbus.Connect(bus)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	z := &fakeBlueZ{conn: conn, powered: true, scanning: make(map[string]bool), known: make(map[dbus.ObjectPath]map[string]dbus.Variant)}
	adapter := map[string]any{
		"SetDiscoveryFilter": func(filter map[string]dbus.Variant) *dbus.Error {
			z.mu.Lock()
			defer z.mu.Unlock()
			z.filters = append(z.filters, filter)
			return nil
		},
		"StartDiscovery": func(from dbus.Sender) *dbus.Error {
			z.mu.Lock()
			defer z.mu.Unlock()
			if !z.powered {
				return dbus.NewError("org.bluez.Error.NotReady", nil)
			}
			z.scanning[string(from)] = true
			return nil
		},
		"StopDiscovery": func(from dbus.Sender) *dbus.Error {
			z.mu.Lock()
			defer z.mu.Unlock()
			if !z.scanning[string(from)] {
				return dbus.NewError("org.bluez.Error.Failed", nil)
			}
			z.restarts++
			return nil
		},
	}
	get := func(m dbus.Message, face, name string) (dbus.Variant, *dbus.Error) {
		z.mu.Lock()
		defer z.mu.Unlock()
		path := m.Headers[dbus.FieldPath].Value().(dbus.ObjectPath)
		if face == adapterFace {
			return dbus.MakeVariant(z.powered), nil
		}
		if v, ok := z.known[path][name]; ok {
			return v, nil
		}
		return dbus.Variant{}, dbus.NewError("org.freedesktop.DBus.Error.InvalidArgs", nil)
	}
	if err := errors.Join(
		conn.ExportMethodTable(adapter, bluezRoot+"/hci0", adapterFace),
		conn.ExportSubtreeMethodTable(map[string]any{"Get": get}, bluezRoot+"/hci0", propertyFace),
	); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.RequestName(bluezName, 0); err != nil {
		t.Fatal(err)
	}
	return z
}

func devicePath(ad *advert) dbus.ObjectPath {
	return dbus.ObjectPath(bluezRoot + "/hci0/dev_" + strings.ReplaceAll(ad.from.String(), ":", "_"))
}

// advertise reports an advertisement as BlueZ does: a new object at first, and then its changes.
func (z *fakeBlueZ) advertise(t *testing.T, ad *advert, name string) {
	t.Helper()
	services, makers := map[string]dbus.Variant{}, map[uint16]dbus.Variant{}
	for _, b := range ad.service {
		services[fmt.Sprintf("0000%04x-0000-1000-8000-00805f9b34fb", b.id)] = dbus.MakeVariant(b.data)
	}
	for _, b := range ad.maker {
		makers[b.id] = dbus.MakeVariant(b.data)
	}
	changed := map[string]dbus.Variant{"RSSI": dbus.MakeVariant(int16(-60))}
	if len(services) > 0 {
		changed["ServiceData"] = dbus.MakeVariant(services)
	}
	if len(makers) > 0 {
		changed["ManufacturerData"] = dbus.MakeVariant(makers)
	}
	path := devicePath(ad)
	z.mu.Lock()
	_, known := z.known[path]
	z.known[path] = map[string]dbus.Variant{"AddressType": dbus.MakeVariant(map[bool]string{true: "random", false: "public"}[ad.from[0] < 0x80]), "Name": dbus.MakeVariant(name)}
	z.mu.Unlock()
	var err error
	if known {
		err = z.conn.Emit(path, propertyFace+".PropertiesChanged", deviceFace, changed, []string{})
	} else {
		err = z.conn.Emit("/", "org.freedesktop.DBus.ObjectManager.InterfacesAdded", path,
			map[string]map[string]dbus.Variant{deviceFace: changed})
	}
	if err != nil {
		t.Error(err)
	}
}

func (z *fakeBlueZ) scans() int {
	z.mu.Lock()
	defer z.mu.Unlock()
	return len(z.scanning)
}

// eventually waits until what is true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 30 s", what)
		}
	}
}

// watched opens a device through a BlueZ, and returns its newest reading of a point.
func watched(t *testing.T, z bluez, driverName string, set func(driver.Config)) func(point string) device.Reading {
	t.Helper()
	d, _ := driver.Find(drivers(z), driverName)
	c := d.Config()
	set(c)
	if b, ok := c.(*bthomeConfig); ok {
		b.scanner.retryMax = 50 * time.Millisecond
	}
	dev, err := driver.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	last := make(map[string]device.Reading)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		dev.(device.Watcher).Watch(ctx, func(r device.Reading) {
			mu.Lock()
			defer mu.Unlock()
			last[r.Point] = r
		})
	})
	t.Cleanup(func() {
		stop()
		running.Wait()
		dev.Close()
	})
	return func(point string) device.Reading {
		mu.Lock()
		defer mu.Unlock()
		return last[point]
	}
}

// TestBlueZ: advertisements arrive through the message bus; a BlueZ that ends is a fault, and heard again when it is
// back.
func TestBlueZ(t *testing.T) {
	bus := messageBus(t)
	read := watched(t, bluez{bus, quietMin}, "bthome", thermometer)
	eventually(t, "without BlueZ it is a fault",
		func() bool { return strings.Contains(read("temperature").Why, "BlueZ does not run") })
	z := startBlueZ(t, bus)
	eventually(t, "a scan", func() bool { return z.scans() == 1 })
	z.mu.Lock()
	if f := z.filters[0]; f["Transport"].Value() != "le" || f["DuplicateData"].Value() != true {
		t.Errorf("filter %v", f)
	}
	z.mu.Unlock()
	for i, data := range []string{"4002C40903BF13", "40022A0A03BF13"} { // found, and then changed
		want := []float64{25, 26.02}[i]
		z.advertise(t, advertises(t, someone, bthomeService, data), "")
		eventually(t, "a value", func() bool { return read("temperature").Value == device.Number(want) })
	}
	z.advertise(t, advertises(t, "A4:C1:38:00:00:01", bthomeService, "40020000"), "")
	z.conn.Emit(bluezRoot+"/hci0", propertyFace+".PropertiesChanged", adapterFace,
		map[string]dbus.Variant{"Powered": dbus.MakeVariant(false)}, []string{})
	eventually(t, "switched off", func() bool { return strings.Contains(read("temperature").Why, "switched off") })
	eventually(t, "another scan", func() bool { return z.scans() == 2 })
	z.advertise(t, advertises(t, someone, bthomeService, "4002C409"), "")
	eventually(t, "a value again", func() bool { return read("temperature").Value == device.Number(25) })
	z.conn.Emit("/", "org.freedesktop.DBus.ObjectManager.InterfacesRemoved", dbus.ObjectPath(bluezRoot+"/hci1"),
		[]string{adapterFace})
	z.conn.Emit("/", "org.freedesktop.DBus.ObjectManager.InterfacesRemoved", dbus.ObjectPath(bluezRoot+"/hci0"),
		[]string{propertyFace, adapterFace})
	eventually(t, "unplugged", func() bool { return strings.Contains(read("temperature").Why, "adapter is gone") })
	eventually(t, "a scan of the next adapter", func() bool { return z.scans() == 3 })
	z.advertise(t, advertises(t, someone, bthomeService, "4002C409"), "")
	eventually(t, "a value once more", func() bool { return read("temperature").Value == device.Number(25) })
	z.conn.Close()
	eventually(t, "BlueZ ended", func() bool { return read("temperature").Quality == device.Bad })
	z = startBlueZ(t, bus)
	eventually(t, "a scan of the new one", func() bool { return z.scans() == 1 })
	z.advertise(t, advertises(t, someone, bthomeService, "4002C409"), "")
	eventually(t, "a value of the new one", func() bool { return read("temperature").Value == device.Number(25) })
}

// TestOwner: a BlueZ that appears ends no scan, and one that is gone does.
func TestOwner(t *testing.T) {
	s := &scan{broke: make(chan error, 1)}
	for i, owners := range [][2]string{{"", ":1.5"}, {":1.5", ""}} {
		s.DeliverSignal("org.freedesktop.DBus", "NameOwnerChanged",
			&dbus.Signal{Body: []any{bluezName, owners[0], owners[1]}})
		if len(s.broke) != i {
			t.Errorf("from %q to %q: %d", owners[0], owners[1], len(s.broke))
		}
	}
}

// TestSilent: a scan that hears nothing is started again, and the devices are no faults for it.
func TestSilent(t *testing.T) {
	bus := messageBus(t)
	z := startBlueZ(t, bus)
	read := watched(t, bluez{bus, 50 * time.Millisecond}, "bthome", thermometer)
	eventually(t, "a scan", func() bool { return z.scans() == 1 })
	z.advertise(t, advertises(t, someone, bthomeService, "4002C409"), "")
	eventually(t, "a value", func() bool { return read("temperature").Value == device.Number(25) })
	eventually(t, "scans that are started again", func() bool {
		z.mu.Lock()
		defer z.mu.Unlock()
		return z.restarts >= 2 && len(z.filters) >= 3
	})
	if got := read("temperature"); z.scans() != 1 || got.Quality != device.Good {
		t.Errorf("%d clients scan; %+v", z.scans(), got)
	}
}

// TestSeek offers what advertises a known format, with its keys; of 2,000 devices a bounded number.
func TestSeek(t *testing.T) {
	bus := messageBus(t)
	z := startBlueZ(t, bus)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		eventually(t, "a search", func() bool { return z.scans() == 1 })
		z.advertise(t, advertises(t, someone, bthomeService, "40002E01641E012E34451601"), "SBHT-003C")
		z.advertise(t, advertises(t, someone, bthomeService, "40002F3A01"), "SBHT-003C")
		z.advertise(t, advertises(t, "D4:48:E6:8F:80:A5", bthomeService, "41A47266C95F730011223378237214"), "SBMO-003Z")
		z.advertise(t, advertises(t, "D4:48:E6:8F:80:A6", bthomeService, "4401642D00"), "SBDW-002C")
		z.advertise(t, advertises(t, "CB:B8:33:4C:88:4F", ruuviMaker, "06170C5668C79E007000C90501D9FFCD004C884F"), "")
		z.advertise(t, advertises(t, "44:00:00:00:00:01", bthomeService, "400164"), "")
		for i := range 2000 {
			z.advertise(t, advertises(t, fmt.Sprintf("C0:00:00:00:%02X:%02X", i/256, i%256), 0x1809, "4002C409"), "")
		}
		for i := range 2000 {
			z.advertise(t, advertises(t, fmt.Sprintf("C0:00:00:01:%02X:%02X", i/256, i%256), bthomeService, "4002C409"), "")
		}
	}()
	found, err := seek(ctx, bluez{bus, quietMin})
	if err != nil {
		t.Fatal(err)
	}
	<-sent
	if len(found) != maxFound+1 { // and that there are more
		t.Errorf("%d were found", len(found))
	}
	for address, want := range map[string][2]string{
		someone:             {"Shelly BLU H&T", "{ driver: bthome, address: A4:C1:38:8D:18:B2, inputs: [battery, button, humidity, light, temperature] }"},
		"D4:48:E6:8F:80:A5": {"Shelly BLU Motion", ""},
		"D4:48:E6:8F:80:A6": {"Shelly BLU Door/Window", "{ driver: bthome, address: D4:48:E6:8F:80:A6, inputs: [battery, window], lost_after: 24h }"},
		"CB:B8:33:4C:88:4F": {"Ruuvi Air", "{ driver: ruuvi, address: CB:B8:33:4C:88:4F, model: air }"},
		"44:00:00:00:00:01": {"BTHome device", ""}, // its address changes
	} {
		i := slices.IndexFunc(found, func(f driver.Found) bool { return f.Where == address })
		if i < 0 {
			t.Errorf("%s was not found", address)
			continue
		}
		if f := found[i]; f.What != want[0] || f.YAML != want[1] || f.Says == "" || device.CheckName(f.Name) != nil {
			t.Errorf("%+v", f)
		}
	}
}
