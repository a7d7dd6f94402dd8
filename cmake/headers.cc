// Stands for all files that share precompiled headers (fleetfit_precompile).
