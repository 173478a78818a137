package config

import (
	"errors"
	"fmt"
)

// Listen are addresses of a command line that replace a file's; "" replaces nothing.
type Listen struct {
	HTTP  string // --listen, which also turns HTTPS and peers off: for a second site, or a trial
	HTTPS string // --listen-https
	Peers string // --listen-peers
}

// Listening returns the sections http and internet with the addresses of a command line. The
// error names the option that is wrong.
func (s *Site) Listening(o Listen) (HTTP, *Internet, error) {
	web, internet := s.HTTP, s.Internet
	if o.HTTP != "" {
		if err := checkListen(o.HTTP); err != nil {
			return web, nil, fmt.Errorf("--listen %w", err)
		}
		web.Listen, web.HTTPS = o.HTTP, ListenNone
		if o.Peers == "" {
			internet = nil
		}
	}
	if o.HTTPS != "" {
		if err := checkHTTPS(o.HTTPS); err != nil {
			return web, nil, fmt.Errorf("--listen-https %w", err)
		}
		web.HTTPS = o.HTTPS
	}
	if o.Peers != "" {
		if err := checkInternet(o.Peers); err != nil {
			return web, nil, fmt.Errorf("--listen-peers %w", err)
		}
		if internet == nil {
			return web, nil, errors.New("--listen-peers is for a site whose configuration has the section internet")
		}
		own := *internet
		own.Listen, internet = o.Peers, &own
	}
	return web, internet, nil
}
