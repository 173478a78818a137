// Package dht is the global network as a medium: sites are found in a Kademlia DHT by
// what they can do, under names that only their realm can make. What it says is a hint:
// a site itself shows its card, and who does not is not there.
//
// The library is kad-dht as it is, which believes more than it should. What it is given
// is made here so that nobody afar can end the program or fill its memory: sender and
// answer for what is asked, guarded, request and store for what is served.
package dht
