module bittern/rivals/quamina

go 1.21

require quamina.net/go/quamina v1.5.1

// The same, by the name that Go's proxy has.
replace quamina.net/go/quamina => github.com/timbray/quamina v1.5.1
