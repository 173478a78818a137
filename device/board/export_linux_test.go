package board

var OpenSerial = openSerial
