package beacon

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"agentsite/device"

	"github.com/godbus/dbus/v5"
)

// bluez hears advertisements through BlueZ, on the system's message bus. BlueZ has the privileges that a scan needs, and
// shares the adapter with other programs. Its interfaces: org.bluez.Adapter(5) and org.bluez.Device(5).
type bluez struct {
	bus   string        // the address of the message bus; "" is the system's
	quiet time.Duration // quietMin but in tests
}

const (
	bluezName    = "org.bluez"
	bluezRoot    = "/org/bluez"
	adapterFace  = "org.bluez.Adapter1"
	deviceFace   = "org.bluez.Device1"
	propertyFace = "org.freedesktop.DBus.Properties"

	adapters    = 8               // hci0 to hci7
	callTimeout = 5 * time.Second // of one call
	// BlueZ pauses between two rounds of a scan. One that is off for longer was ended by somebody else.
	scanPause = 20 * time.Second
	// Some adapters stop to hear while BlueZ says that it scans. After quietMin without an advertisement that is wanted
	// the scan is started again, and after twice as long each time, until there is one.
	quietMin = time.Minute
	quietMax = 16 * time.Minute
)

// hear scans on the first adapter that is switched on. The bus only passes on signals of the wanted devices.
func (z bluez) hear(ctx context.Context, l listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &scan{listener: l, broke: make(chan error, 1), scanning: make(chan bool, 1), rules: make(map[string]bool)}
	if err := s.connect(ctx, z.bus); err != nil {
		return err
	}
	defer s.conn.Close()
	if err := s.start(ctx); err != nil {
		return err
	}
	l.started()
	paused, quiet := time.NewTimer(0), z.quiet
	paused.Stop()
	defer paused.Stop()
	silent := time.NewTimer(quiet)
	defer silent.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-s.broke:
			return err
		case <-s.conn.Context().Done():
			return device.Faultf(device.Offline, "the connection to the system's message bus broke")
		case on := <-s.scanning:
			if paused.Stop(); !on {
				paused.Reset(scanPause)
			}
		case <-paused.C:
			return device.Faultf(device.Offline, "another program ended the Bluetooth scan")
		case <-silent.C:
			if s.any.Swap(false) {
				quiet = z.quiet
			} else {
				quiet = min(2*quiet, quietMax)
				slog.Debug("nothing is heard, and the Bluetooth scan is started again", "next", quiet)
				if err := s.restart(ctx); err != nil {
					return err
				}
			}
			silent.Reset(quiet)
		case <-l.changed:
			if err := s.follow(ctx); err != nil {
				return err
			}
		}
	}
}

// scan is one connection to BlueZ with a running scan.
type scan struct {
	listener
	conn     *dbus.Conn
	adapter  dbus.ObjectPath
	broke    chan error
	scanning chan bool       // the last change of the adapter's Discovering
	any      atomic.Bool     // something was heard
	rules    map[string]bool // the match rules of wanted devices
}

// connect calls no method of BlueZ yet.
func (s *scan) connect(ctx context.Context, bus string) (err error) {
	options := []dbus.ConnOption{dbus.WithContext(ctx), dbus.WithSignalHandler(s), dbus.WithAuth(dbus.AuthExternal(strconv.Itoa(os.Getuid())))}
	if bus == "" {
		s.conn, err = dbus.ConnectSystemBus(options...)
	} else {
		s.conn, err = dbus.Connect(bus, options...)
	}
	if err != nil {
		return device.Faultf(device.Offline, "there is no system message bus for Bluetooth; install dbus and bluez: %w", err)
	}
	return nil
}

// start subscribes, and then starts the scan.
func (s *scan) start(ctx context.Context) error {
	if err := s.match(ctx, "AddMatch", "type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',arg0='"+bluezName+"'"); err != nil {
		return err
	}
	if err := s.find(ctx); err != nil {
		return err
	}
	at := "path='" + string(s.adapter) + "'"
	for _, rule := range []string{properties + "," + at, removed + ",arg0" + at} {
		if err := s.match(ctx, "AddMatch", rule); err != nil {
			return err
		}
	}
	if err := s.follow(ctx); err != nil {
		return err
	}
	return s.discover(ctx)
}

// restart ends the scan, and starts it.
func (s *scan) restart(ctx context.Context) error {
	if err := s.call(ctx, s.adapter, adapterFace+".StopDiscovery").Err; err != nil {
		return because(err)
	}
	return s.discover(ctx)
}

func (s *scan) discover(ctx context.Context) error {
	// With DuplicateData each advertisement is reported, and not only those that differ.
	filter := map[string]dbus.Variant{"Transport": dbus.MakeVariant("le"), "DuplicateData": dbus.MakeVariant(true)}
	if err := s.call(ctx, s.adapter, adapterFace+".SetDiscoveryFilter", filter).Err; err != nil {
		return because(err)
	}
	return because(s.call(ctx, s.adapter, adapterFace+".StartDiscovery").Err)
}

func (s *scan) call(ctx context.Context, path dbus.ObjectPath, method string, args ...any) *dbus.Call {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return s.conn.Object(bluezName, path).CallWithContext(ctx, method, 0, args...)
}

// find finds the adapter.
func (s *scan) find(ctx context.Context) error {
	off := false
	for i := range adapters {
		path := dbus.ObjectPath(fmt.Sprintf("%s/hci%d", bluezRoot, i))
		var powered dbus.Variant
		err := s.call(ctx, path, propertyFace+".Get", adapterFace, "Powered").Store(&powered)
		if name := errorName(err); name == "org.freedesktop.DBus.Error.UnknownObject" || name == "org.freedesktop.DBus.Error.UnknownMethod" {
			continue
		}
		if err != nil {
			return because(err)
		}
		if on, _ := powered.Value().(bool); on {
			s.adapter = path
			return nil
		}
		off = true
	}
	if off {
		return device.Faultf(device.Offline,
			"Bluetooth is switched off; run bluetoothctl power on, or rfkill unblock bluetooth")
	}
	return device.Faultf(device.Offline,
		"BlueZ knows no Bluetooth adapter; plug one in, or look whether dtoverlay=disable-bt is in config.txt")
}

func errorName(err error) string {
	var e dbus.Error
	if errors.As(err, &e) {
		return e.Name
	}
	return ""
}

// because is the fault for an error of a call; nil for none.
func because(err error) error {
	switch name := errorName(err); {
	case err == nil:
		return nil
	case name == "org.freedesktop.DBus.Error.ServiceUnknown", name == "org.freedesktop.DBus.Error.NameHasNoOwner",
		strings.HasPrefix(name, "org.freedesktop.DBus.Error.Spawn"):
		return device.Faultf(device.Offline, "BlueZ does not run; install bluez, and run systemctl enable --now bluetooth")
	case name == "org.freedesktop.DBus.Error.AccessDenied":
		return device.Faultf(device.Denied,
			"BlueZ refuses this user; add it to the group bluetooth, and start the site again")
	case name == "org.bluez.Error.NotReady":
		return device.Faultf(device.Offline,
			"Bluetooth is switched off; run bluetoothctl power on, or rfkill unblock bluetooth")
	case errors.Is(err, context.DeadlineExceeded):
		return device.Faultf(device.Offline, "BlueZ does not answer; run systemctl restart bluetooth: %w", err)
	}
	return device.Faultf(device.Offline, "BlueZ does not scan; run systemctl restart bluetooth: %w", err)
}

const (
	properties = "type='signal',sender='" + bluezName + "',interface='" + propertyFace + "',member='PropertiesChanged'"
	manager    = "type='signal',sender='" + bluezName + "',interface='org.freedesktop.DBus.ObjectManager',member="
	added      = manager + "'InterfacesAdded'"
	removed    = manager + "'InterfacesRemoved'"
)

func (s *scan) match(ctx context.Context, method, rule string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return because(s.conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus."+method, 0, rule).Err)
}

// follow subscribes to the wanted devices, and to no others any more.
func (s *scan) follow(ctx context.Context) error {
	want := make(map[string]bool)
	if s.only == nil {
		want[properties+",path_namespace='"+string(s.adapter)+"'"] = true
		want[added] = true
	} else {
		for _, a := range s.only() {
			path := string(s.adapter) + "/dev_" + strings.ReplaceAll(a.String(), ":", "_")
			want[properties+",path='"+path+"'"] = true
			want[added+",arg0path='"+path+"'"] = true
		}
	}
	for rule := range s.rules {
		if !want[rule] {
			if err := s.match(ctx, "RemoveMatch", rule); err != nil {
				return err
			}
			delete(s.rules, rule)
		}
	}
	for rule := range want {
		if !s.rules[rule] {
			if err := s.match(ctx, "AddMatch", rule); err != nil {
				return err
			}
			s.rules[rule] = true
		}
	}
	return nil
}

// DeliverSignal is called by the connection's goroutine that reads, for each signal.
func (s *scan) DeliverSignal(_, name string, signal *dbus.Signal) {
	switch body := signal.Body; {
	case name == "NameOwnerChanged" && len(body) == 3 && body[0] == bluezName && body[1] != "": // an owner is gone
		s.breaks(device.Faultf(device.Offline, "BlueZ ended or was restarted"))
	case name == "PropertiesChanged" && len(body) == 3:
		face, _ := body[0].(string)
		changed, _ := body[1].(map[string]dbus.Variant)
		switch {
		case face == deviceFace:
			s.device(signal.Path, changed)
		case face == adapterFace:
			s.changedAdapter(changed)
		}
	case name == "InterfacesRemoved" && len(body) == 2:
		if faces, _ := body[1].([]string); slices.Contains(faces, adapterFace) {
			s.breaks(device.Faultf(device.Offline, "the Bluetooth adapter is gone; plug it in again"))
		}
	case name == "InterfacesAdded" && len(body) == 2:
		path, _ := body[0].(dbus.ObjectPath)
		faces, _ := body[1].(map[string]map[string]dbus.Variant)
		s.device(path, faces[deviceFace])
	}
}

func (s *scan) breaks(err error) {
	select {
	case s.broke <- err:
	default:
	}
}

func (s *scan) changedAdapter(changed map[string]dbus.Variant) {
	if on, ok := changed["Powered"].Value().(bool); ok && !on {
		s.breaks(device.Faultf(device.Offline, "Bluetooth was switched off; run bluetoothctl power on, or rfkill unblock "+
			"bluetooth"))
	}
	on, ok := changed["Discovering"].Value().(bool)
	if !ok {
		return
	}
	select {
	case <-s.scanning: // the newest counts
	default:
	}
	s.scanning <- on
}

// device reads the properties of a device that changed. BlueZ reports all service data of a device when one of it was
// heard again.
func (s *scan) device(path dbus.ObjectPath, changed map[string]dbus.Variant) {
	services, _ := changed["ServiceData"].Value().(map[string]dbus.Variant)
	makers, _ := changed["ManufacturerData"].Value().(map[uint16]dbus.Variant)
	if len(services) == 0 && len(makers) == 0 {
		return
	}
	from, ok := addressOf(path)
	if !ok {
		return
	}
	ad := advert{from: from}
	for uuid, v := range services {
		if id, ok := shortUUID(uuid); ok {
			data, _ := v.Value().([]byte)
			ad.service = append(ad.service, block{id, data})
		}
	}
	for id, v := range makers {
		data, _ := v.Value().([]byte)
		ad.maker = append(ad.maker, block{id, data})
	}
	s.any.Store(true)
	s.heard(&ad)
}

// addressOf returns the address of a device's object, such as /org/bluez/hci0/dev_A4_C1_38_01_02_03.
func addressOf(path dbus.ObjectPath) (address, bool) {
	_, name, found := strings.Cut(string(path), "/dev_")
	a, err := parseAddress(strings.ReplaceAll(name, "_", ":"))
	return a, found && err == nil
}

// shortUUID returns the 16-bit form of a UUID that has one.
func shortUUID(uuid string) (uint16, bool) {
	const base = "-0000-1000-8000-00805f9b34fb"
	short, isShort := strings.CutSuffix(uuid, base)
	short, isZero := strings.CutPrefix(short, "0000")
	raw, err := hex.DecodeString(short)
	if !isShort || !isZero || err != nil || len(raw) != 2 {
		return 0, false
	}
	return uint16(raw[0])<<8 | uint16(raw[1]), true
}

// property returns a text that BlueZ knows of a device, "" for none.
func (s *scan) property(ctx context.Context, a address, name string) string {
	path := s.adapter + dbus.ObjectPath("/dev_"+strings.ReplaceAll(a.String(), ":", "_"))
	var v dbus.Variant
	if s.call(ctx, path, propertyFace+".Get", deviceFace, name).Store(&v) != nil {
		return ""
	}
	text, _ := v.Value().(string)
	return text
}
