// Command publish makes the parts of a release that need modules which the program does not: the
// index of an apt repository with its OpenPGP signatures, and a container image with the certificates of
// public authorities. The script build calls it.
//
//	publish cert KEY [CERT...]          prints the OpenPGP certificate of a release key, and others
//	publish apt KEY FOLDER DAYS         writes FOLDER/dists of all packages below FOLDER/pool
//	publish image FILE VERSION NAME PLATFORM=PROGRAM...
//	                                    writes a container image; NAME is that of the MCP registry, or ""
//
// SOURCE_DATE_EPOCH is the date of all of them.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "publish:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	date := time.Unix(seconds, 0).UTC()
	if err != nil || date.Before(certified) {
		return fmt.Errorf("SOURCE_DATE_EPOCH is not set to the seconds since 1970 of the release, after %s",
			certified.Format(time.DateOnly))
	}
	switch {
	case len(args) >= 2 && args[0] == "cert":
		return printCertificates(os.Stdout, args[1], args[2:])
	case len(args) == 4 && args[0] == "apt":
		days, err := strconv.Atoi(args[3])
		if err != nil || days < 1 {
			return fmt.Errorf("DAYS is a number of days, not %q", args[3])
		}
		return writeRepository(args[1], args[2], date, days)
	case len(args) >= 5 && args[0] == "image":
		return writeImage(args[1], args[2], args[3], args[4:], date)
	}
	return errors.New("name a command, as of its documentation: cert, apt or image")
}
