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

// wifiFile says on the boot partition which Wi-Fi to join.
const wifiFile = bootFolder + "/agentsite-wifi.txt"

// network is a Wi-Fi.
type network struct{ country, name, password string }

// parseWiFi reads a line for each: country, name and password, each before a colon.
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
			return n, fmt.Errorf("there is no %q: country, name and password, each before a colon, one in a line", key)
		}
	}
	switch length := len(n.password); {
	case n.name == "":
		return network{}, nil // nobody has filled it in
	case len(n.name) > 32:
		return n, errors.New("a Wi-Fi's name has at most 32 bytes")
	case length > 0 && (length < 8 || length > 63):
		return n, errors.New("a Wi-Fi's password has 8 to 63 characters, or there is none")
	case n.country != "" && len(n.country) != 2:
		return n, errors.New("a country is two letters, such as DE")
	}
	return n, nil
}

// joinWiFi makes the board's radio join the owner's Wi-Fi, and join it again whenever the
// connection is lost. The radio itself proves that it knows the password.
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
			fmt.Fprintln(os.Stderr, "wifi: the country is not taken:", err)
		}
	}
	for ; ; time.Sleep(10 * time.Second) {
		cards, err := c.Interfaces()
		if err != nil {
			return err
		}
		for _, card := range cards {
			if _, err := c.BSS(card); err == nil || card.Type != wifi.InterfaceTypeStation {
				continue // it has joined one
			}
			if err := up(card.Name); err != nil {
				return err
			}
			join := func() error { return c.ConnectWPAPSK(card, n.name, n.password) }
			if n.password == "" {
				join = func() error { return c.Connect(card, n.name) }
			}
			fmt.Fprintf(os.Stderr, "wifi: %s joins %q\n", card.Name, n.name)
			if err := join(); err != nil {
				fmt.Fprintf(os.Stderr, "wifi: %q is not joined: %v\n", n.name, err)
			}
		}
	}
}
