#pragma once
#include <string.h>
#include <systemd/sd-bus.h>

/// The entries of the table that csystemd_secret_portal() fills.
enum { CSYSTEMD_SECRET_PORTAL_ENTRIES = 4 };

/// Fills the table of the interface org.freedesktop.impl.portal.Secret. Swift cannot use the macros of sd-bus.
static inline void csystemd_secret_portal(
    sd_bus_vtable *table, sd_bus_message_handler_t retrieve, sd_bus_property_get_t version) {
  const sd_bus_vtable entries[CSYSTEMD_SECRET_PORTAL_ENTRIES] = {
      SD_BUS_VTABLE_START(0),
      SD_BUS_METHOD_WITH_NAMES(
          "RetrieveSecret", "osha{sv}",
          SD_BUS_PARAM(handle) SD_BUS_PARAM(app_id) SD_BUS_PARAM(fd) SD_BUS_PARAM(options), "ua{sv}",
          SD_BUS_PARAM(response) SD_BUS_PARAM(results), retrieve, SD_BUS_VTABLE_UNPRIVILEGED),
      SD_BUS_PROPERTY("version", "u", version, 0, SD_BUS_VTABLE_PROPERTY_CONST),
      SD_BUS_VTABLE_END,
  };
  memcpy(table, entries, sizeof entries);
}
