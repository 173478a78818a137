// Package mqtt joins the site with an MQTT broker, and by it with Home Assistant and other programs of a home: its
// points are entities there, and what it may move is moved from there.
//
// A broker proves nobody. What comes from it is asked for by one principal, mqtt:mqtt, with the permission that the
// site's owner wrote, and is decided by the node like every other call. An output that was moved from there stays so
// by short leases, which are renewed as long as the connection lives and nobody says that Home Assistant is gone.
package mqtt
