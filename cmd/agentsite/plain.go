package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
)

// plain returns an error's text and replaces messages of Go's packages, such as "open FILE: no such
// file or directory" or "dial tcp ADDRESS: connect: connection refused".
func plain(err error) string { return reword(err.Error(), err) }

// reword replaces in text the messages of err, and of the errors that it wraps, outermost first.
func reword(text string, err error) string {
	switch e := err.(type) {
	case *url.Error:
		text = strings.ReplaceAll(text, e.Error(), e.Err.Error())
	case *fs.PathError:
		text = strings.ReplaceAll(text, e.Error(), plainPath(e.Path, e.Err))
	case *net.OpError:
		text = strings.ReplaceAll(text, e.Error(), plainNet(e))
	case *net.DNSError:
		text = strings.ReplaceAll(text, e.Error(), "no address is known for the name "+e.Name)
	case *strconv.NumError:
		text = strings.ReplaceAll(text, e.Error(), strconv.Quote(e.Num)+" is not a number that fits here")
	case x509.UnknownAuthorityError, x509.HostnameError, x509.CertificateInvalidError:
		text = strings.ReplaceAll(text, "tls: failed to verify certificate: ", "")
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return reword(text, e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			text = reword(text, one)
		}
	}
	return text
}

func plainPath(path string, err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path + " does not exist"
	case errors.Is(err, fs.ErrExist):
		return path + " exists already"
	case errors.Is(err, fs.ErrPermission):
		return path + " may not be used by this user"
	case errors.Is(err, syscall.ENOSPC):
		return path + " cannot be written: the disk is full"
	case errors.Is(err, syscall.EROFS):
		return path + " is on a read-only disk"
	case errors.Is(err, syscall.EISDIR):
		return path + " is a folder"
	}
	return fmt.Sprintf("%s cannot be used (%v)", path, err)
}

func plainNet(e *net.OpError) string {
	at := "the address"
	if e.Addr != nil {
		at = e.Addr.String()
	}
	var dns *net.DNSError
	switch {
	case errors.As(e, &dns):
		return dns.Error() // which is next in the chain
	case errors.Is(e, syscall.ECONNREFUSED):
		return "nothing listens at " + at
	case errors.Is(e, syscall.EADDRINUSE):
		return at + " is in use by another program"
	case errors.Is(e, syscall.EADDRNOTAVAIL):
		return at + " is not an address of this machine"
	case errors.Is(e, syscall.EACCES):
		return at + " may not be used by this user"
	case errors.Is(e, syscall.ENETUNREACH), errors.Is(e, syscall.EHOSTUNREACH):
		return "this machine has no route to " + at
	case e.Timeout():
		return at + " does not answer"
	}
	return fmt.Sprintf("the connection to %s ended (%v)", at, e.Err)
}

// flagError explains an invalid flag in plain words.
func flagError(err error) error {
	var invalid *pflag.InvalidValueError
	var number *strconv.NumError
	if _, rest, ok := strings.Cut(err.Error(), "unknown shorthand flag: '"); ok && strings.ContainsAny(rest[:1], "0123456789.") {
		_, number, _ := strings.Cut(rest, " in ")
		return fmt.Errorf("write two dashes before a negative number: -- %s", clean(number))
	}
	if !errors.As(err, &invalid) {
		return err
	}
	name, value := "--"+invalid.GetFlag().Name, clean(invalid.GetValue())
	switch {
	case !errors.As(err, &number):
		return fmt.Errorf("%s is %q: %w", name, value, invalid.Unwrap())
	case strings.HasPrefix(invalid.GetFlag().Value.Type(), "float"):
		return fmt.Errorf("%s takes a number, not %q", name, value)
	case strings.HasPrefix(invalid.GetFlag().Value.Type(), "bool"):
		return fmt.Errorf("%s takes true or false, not %q", name, value)
	}
	return fmt.Errorf("%s takes a whole number, not %q", name, value)
}
