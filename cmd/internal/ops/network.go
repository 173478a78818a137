package ops

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"agentsite/device/driver"
	"agentsite/discovery"
	"agentsite/discovery/mdns"
	"agentsite/node/acts"
	"agentsite/node/config"
	"agentsite/node/state"
)

// mdnsTimeout is how long the site's announcements are waited for, which are asked for twice
// in that time.
const mdnsTimeout = 1500 * time.Millisecond

// networkFindings reports why others do not find the running site that listens at the
// carriers, or on which interfaces they do.
func networkFindings(ctx context.Context, f state.Folder, cfg *config.Site, carriers []acts.Carrier) []driver.Finding {
	note := func(says, do string) []driver.Finding {
		return []driver.Finding{{Severity: driver.Note, Subject: "network", Says: says, Do: do}}
	}
	if carriers == nil {
		return nil
	}
	i := slices.IndexFunc(carriers, func(c acts.Carrier) bool { return c.Kind == acts.HTTPSCarrier })
	if i < 0 {
		return note("this site cannot be found on the network: HTTPS is off", "set http: { https: \":8474\" } in the configuration, and run it without --listen, or with --listen-https :8474")
	}
	at, err := netip.ParseAddrPort(strings.TrimPrefix(carriers[i].Address, "https://"))
	if err == nil && at.Addr().IsLoopback() {
		return note("this site cannot be found on the network: HTTPS listens on this machine only, at "+carriers[i].Address, "set http: { https: \":8474\" } in the configuration")
	}
	if !cfg.Discovery.MDNS {
		return note("this site is not announced on the network: discovery is off", "set discovery: { mdns: on } in the configuration; otherwise others need its address")
	}
	names, err := mdns.Interfaces()
	if err != nil {
		return note("the network interfaces cannot be listed: "+err.Error(), "")
	}
	if len(names) == 0 {
		return []driver.Finding{{
			Severity: driver.Problem, Subject: "network", Says: "this site cannot be found: no interface with an address and multicast is up",
			Do: "connect a cable or Wi-Fi; ip address lists the interfaces",
		}}
	}
	slices.Sort(names)
	announced, err := announcedAddresses(ctx, f)
	if err != nil {
		return note("the announcement on "+strings.Join(names, ", ")+" cannot be checked: "+err.Error(), "run agentsite doctor as the user who runs the site, or as the superuser")
	}
	var found []string
	var all []driver.Finding
	for _, name := range names {
		if slices.ContainsFunc(addressesOf(name), func(a netip.Addr) bool { return announced[a] }) {
			found = append(found, name)
			continue
		}
		all = append(all, driver.Finding{
			Severity: driver.Problem, Subject: name, Says: "the site is not found on this interface: this machine does not receive its own multicast DNS",
			Do: "open UDP port 5353 in the firewall, in and out (sudo nft list ruleset shows it); a site that has just started needs a second",
		})
	}
	if len(found) > 0 {
		all = append(all, note("this site can be found on "+strings.Join(found, ", "), "")...)
	}
	return all
}

// announcedAddresses returns the addresses that the folder's site announces by multicast DNS.
func announcedAddresses(ctx context.Context, f state.Folder) (map[netip.Addr]bool, error) {
	key, err := f.ReadKey()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, mdnsTimeout)
	defer cancel()
	all := make(map[netip.Addr]bool)
	_ = new(mdns.Medium).Find(ctx, func(s discovery.Sighting) error { // nothing is heard where it fails
		if s.Site == key.ID() && s.Record != nil {
			for _, a := range s.At {
				all[a.WithZone("")] = true
			}
		}
		return errIgnored
	})
	return all, nil
}

// errIgnored leaves a sighting unknown to the medium, so that it asks for it again on each
// interface.
var errIgnored = errors.New("only looked at")

// addressesOf returns the addresses of an interface, none when it has gone.
func addressesOf(name string) (all []netip.Addr) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return nil
	}
	addresses, _ := i.Addrs()
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			all = append(all, p.Addr())
		}
	}
	return all
}
