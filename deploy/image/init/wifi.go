//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/mdlayher/wifi"
)

// wifiFile holds the name and password of the owner's Wi-Fi.
const wifiFile = bootFolder + "/agentsite-wifi.txt"

// network is a Wi-Fi network.
type network struct{ country, name, password string }

// parseWiFi parses lines of the form "key: value" with country, name and password. Without a
// name it returns the zero network.
func parseWiFi(text string) (n network, err error) {
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		key, value, colon := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch key = strings.TrimSpace(key); {
		case key == "" || strings.HasPrefix(key, "#"):
		case colon && key == "country":
			n.country = strings.ToUpper(value)
		case colon && key == "name":
			n.name = value
		case colon && key == "password":
			n.password = value
		default:
			return n, fmt.Errorf("unknown key %q: write country, name or password, such as \"country: DE\"", key)
		}
	}
	switch length := len(n.password); {
	case n.name == "":
		return network{}, nil // not filled in
	case len(n.name) > 32:
		return n, errors.New("a Wi-Fi's name has at most 32 bytes")
	case length > 0 && (length < 8 || length > 63):
		return n, errors.New("a Wi-Fi's password has 8 to 63 characters, or is empty")
	case n.country != "" && len(n.country) != 2:
		return n, errors.New("a country is two letters, such as DE")
	}
	return n, nil
}

// joinWiFi joins the owner's Wi-Fi, and joins it again after a lost connection. The radio's
// firmware does the WPA handshake.
func joinWiFi() error {
	text, err := os.ReadFile(wifiFile)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = nil, nil
	}
	if err != nil {
		return err
	}
	n, err := parseWiFi(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", wifiFile, err)
	}
	if n.name == "" {
		return nil
	}
	c, err := wifi.New()
	if err != nil {
		return err
	}
	defer c.Close()
	if n.country != "" {
		if err := c.SetRegulatoryRegion(n.country, wifi.RegulatoryHintUser); err != nil {
			fmt.Fprintln(os.Stderr, "wifi: the country is not set:", err)
		}
	}
	for ; ; time.Sleep(10 * time.Second) {
		cards, err := c.Interfaces()
		if err != nil {
			return err
		}
		for _, card := range cards {
			if _, err := c.BSS(card); err == nil || card.Type != wifi.InterfaceTypeStation {
				continue // joined already
			}
			if err := up(card.Name); err != nil {
				return err
			}
			join := func() error { return c.ConnectWPAPSK(card, n.name, n.password) }
			if n.password == "" {
				join = func() error { return c.Connect(card, n.name) }
			}
			fmt.Fprintf(os.Stderr, "wifi: %s is joining %q\n", card.Name, n.name)
			if err := join(); err != nil {
				fmt.Fprintf(os.Stderr, "wifi: joining %q failed: %v\n", n.name, err)
			}
		}
	}
}
