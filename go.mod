module pawl

go 1.26
